package roundtrip_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit/testdata/views/golden/views"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// reread is a view of a list of as many strings, numbers and uuids.
func reread(t *testing.T, elements int) views.ContainersView {
	t.Helper()
	s := &views.Containers{Strings: make([]string, elements), Longs: make([]int64, elements)}
	for i := range elements {
		s.Strings[i], s.Longs[i] = fmt.Sprint(i), int64(i)
	}
	v, err := views.NewContainersView(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestView_ReadsWhatIsChangedWithoutTheRest reads each element and sets it, in loops. To
// put a list together for each getter were 3.2 GB for the numbers alone.
func TestView_ReadsWhatIsChangedWithoutTheRest(t *testing.T) {
	const elements, most = 20_000, 100 << 20
	for name, order := range map[string]func(i int) int{
		"forwards": func(i int) int { return i }, "backwards": func(i int) int { return elements - 1 - i },
	} {
		v := reread(t, elements)
		if n := testkit.Allocated(most, func() {
			for i := range elements {
				i = order(i)
				v.SetLongsAt(i, v.Longs().At(i)+1)
			}
		}); n > 4*most {
			t.Errorf("%s: numbers allocate %d bytes", name, n)
		}
		if n := testkit.Allocated(most, func() {
			for i := range elements {
				i = order(i)
				v.SetStringsAt(i, v.Strings().At(i)+"x")
			}
		}); n > 4*most {
			t.Errorf("%s: strings allocate %d bytes", name, n)
		}
		s, err := v.Struct()
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range s.Strings {
			if s.Longs[i] < int64(i)+1 || !strings.HasPrefix(text, fmt.Sprint(i)+"x") {
				t.Fatalf("%s: element %d is %q and %d", name, i, text, s.Longs[i])
			}
		}
	}
}

// TestView_ListsStayWhatTheyWere when the view is changed further, as those of a view that
// nobody has changed.
func TestView_ListsStayWhatTheyWere(t *testing.T) {
	v := reread(t, 5)
	v.SetLongsAt(1, 10)
	v.AppendStrings("end")
	longs, texts := v.Longs(), v.Strings()
	v.SetLongsAt(1, 20)
	v.RemoveLongsAt(0)
	v.RemoveStringsAt(5)
	if longs.Len() != 5 || longs.At(1) != 10 || longs.At(4) != 4 || texts.Len() != 6 || texts.At(5) != "end" || texts.Index().At(5) != "end" {
		t.Errorf("the lists are %v and %v", longs, texts)
	}
	if now := v.Longs(); now.Len() != 4 || now.At(0) != 20 || v.Strings().Len() != 5 {
		t.Errorf("the lists are %v and %v", now, v.Strings())
	}
	for name, at := range map[string]func(){
		"numbers": func() { longs.At(5) }, "numbers before": func() { longs.At(-1) },
		"strings": func() { texts.At(6) }, "strings before": func() { texts.At(-1) },
	} {
		if text := panicOf(at); !strings.Contains(text, "of a list of") {
			t.Errorf("%s: it panics with %q", name, text)
		}
	}
}

// TestView_ReadsElementsOfAllSizes that were set.
func TestView_ReadsElementsOfAllSizes(t *testing.T) {
	var v views.ContainersView
	v.AppendBools(false)
	v.AppendBools(false)
	v.SetBoolsAt(0, true)
	v.AppendBytes(-3)
	v.AppendShorts(-300)
	v.AppendDoubles(0.5)
	v.AppendBinaries([]byte("binary"))
	if !v.Bools().At(0) || v.Bools().At(1) || v.Bytes().At(0) != -3 || v.Shorts().At(0) != -300 || v.Doubles().At(0) != 0.5 || string(v.Binaries().At(0)) != "binary" {
		t.Errorf("the view is %v", &v)
	}
}

// TestView_CopiesShareWhatIsPutTogether reads copies of a view that was changed in several
// goroutines, of which each changes its own.
func TestView_CopiesShareWhatIsPutTogether(t *testing.T) {
	v := reread(t, 300)
	v.SetLongsAt(7, 70)
	v.AppendStrings("end")
	v.SetTextsEntry("k", "v")
	var workers sync.WaitGroup
	for number := range 4 {
		own := v
		workers.Go(func() {
			for i := range 300 {
				if v.Longs().AppendTo(nil)[7] != 70 || v.Strings().At(300) != "end" || v.Texts().Len() != 1 {
					t.Error("the original has changed")
				}
				own.SetLongsAt(i, own.Longs().At(i)+int64(number))
				own.SetStringsAt(i, fmt.Sprint(number))
				own.SetTextsEntry(fmt.Sprint(i%3), "x")
			}
			if got := own.Longs().AppendTo(nil); got[7] != 70+int64(number) || got[299] != 299+int64(number) {
				t.Errorf("the numbers are %v", got)
			}
		})
	}
	workers.Wait()
	if _, err := thrift.Marshal(&v); err != nil {
		t.Error(err)
	}
}
