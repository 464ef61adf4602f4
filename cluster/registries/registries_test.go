package registries

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

func TestCommon_ReportsEverything(t *testing.T) {
	var fields []string
	note := func(field, format string, arguments ...any) { fields = append(fields, field) }
	CheckCommon(Common{}, note)
	CheckCommon(Common{CheckInterval: -1, DeliverInterval: -1, HoldTime: -1, BackoffMax: time.Second}, note)
	if len(fields) > 0 {
		t.Errorf("something is wrong with %v", fields)
	}
	CheckCommon(Common{
		ZoneTag: strings.Repeat("x", limits.RegistryNameBytes+1), RequestTimeout: -1, BackoffMin: time.Minute, MaxInstances: -1, MaxValueBytes: -1,
	}, note)
	CheckCommon(Common{BackoffMin: -1, BackoffMax: -1}, note)
	want := []string{"ZoneTag", "RequestTimeout", "MaxInstances", "MaxValueBytes", "BackoffMin", "BackoffMin", "BackoffMax"}
	if !slices.Equal(fields, want) {
		t.Errorf("got %v, want %v", fields, want)
	}
}

func TestCommon_Defaults(t *testing.T) {
	full := CommonDefaults(Common{HoldTime: -1, MaxInstances: 3})
	if full.HoldTime >= 0 || full.MaxInstances != 3 || full.RequestTimeout != limits.RegistryRequestTimeout || full.ZoneTag != "zone" || full.Logger == nil {
		t.Errorf("%+v", full)
	}
}

func TestInstance_Checks(t *testing.T) {
	for address, sound := range map[string]bool{
		"10.0.0.1:8888": true, "[2001:db8::1]:1": true, "orders.internal:65535": true, "unix:///run/x": true, "unix:@x": true,
		"": false, ":80": false, "10.0.0.1": false, "10.0.0.1:0": false, "10.0.0.1:65536": false, "10.0.0.1:+1": false,
		"2001:db8::1:1": false, "x y:80": false, "x/y:80": false, "\x1b[2J:80": false, "a\xff:80": false,
		"unix:1": false, "unix://": false, "unix:/": false, "unix:///a\nb": false,
		strings.Repeat("x", 300) + ":80": false,
	} {
		err := CheckInstance(cluster.Instance{Address: address})
		if (err == nil) != sound {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && (len(err.Error()) > 1000 || hasControls(err.Error())) {
			t.Errorf("%q is quoted as it is: %v", address, err)
		}
		read, again := InstanceOf(address, 1, nil, "zone")
		if (again == nil) != sound || sound && read.Address != address {
			t.Errorf("%q is read as %+v, %v", address, read, again)
		}
	}
	for _, weight := range []int{-1, limits.RegistryWeightMax + 1} {
		if err := CheckInstance(cluster.Instance{Address: "10.0.0.1:80", Weight: weight}); err == nil {
			t.Errorf("weight %d is sound", weight)
		}
		if read, err := InstanceOf("10.0.0.1:80", weight, nil, "zone"); err != nil || CheckInstance(read) != nil {
			t.Errorf("weight %d is read as %+v, %v", weight, read, err)
		}
	}
	for name, sound := range map[string]bool{
		"orders": true, "shop.Orders": true, "...": true,
		"": false, "a/b": false, ".": false, "..": false, "a\nb": false, "\ufeffa": false, strings.Repeat("x", limits.RegistryNameBytes+1): false,
	} {
		if err := CheckService(name); (err == nil) != sound {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestInstance_Fields: the zone travels as a tag, and a weight that is none as 10.
func TestInstance_Fields(t *testing.T) {
	own := map[string]string{"version": "2"}
	weight, tags := FieldsOf(cluster.Instance{Zone: "west", Tags: own}, "zone")
	if weight != limits.InstanceWeight || !maps.Equal(tags, map[string]string{"version": "2", "zone": "west"}) || len(own) != 1 {
		t.Errorf("weight %d, tags %v, of %v", weight, tags, own)
	}
	read, err := InstanceOf("10.0.0.1:80", weight, tags, "zone")
	if err != nil || read.Zone != "west" || read.Weight != weight {
		t.Errorf("%+v, %v", read, err)
	}
	if weight, tags := FieldsOf(cluster.Instance{Weight: 3}, "zone"); weight != 3 || tags != nil {
		t.Errorf("weight %d, tags %v", weight, tags)
	}
	if _, tags := FieldsOf(cluster.Instance{Zone: "west"}, "place"); tags["place"] != "west" {
		t.Errorf("tags %v", tags)
	}
}

func TestPauses_DoubleUpToMax(t *testing.T) {
	pauses := Pauses{Min: 100 * time.Millisecond, Max: time.Second}
	for range 2 {
		for _, most := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
			most *= time.Millisecond
			if pause := pauses.Next(); pause < most/2 || pause > most {
				t.Errorf("a pause of %v, want %v to %v", pause, most/2, most)
			}
		}
		pauses.Reset()
	}
}

func TestWait_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := Wait(t.Context(), time.Minute); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Wait(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if d := Jitter(time.Minute); d < 54*time.Second || d > 66*time.Second {
			t.Errorf("%v is not around a minute", d)
		}
	})
}

// TestNotices_CannotFlood: neither one subject nor many.
func TestNotices_CannotFlood(t *testing.T) {
	var log bytes.Buffer
	n := &Notices{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	now := time.Now()
	for range 100 {
		n.Warn(now, "it fails", "orders", "error", "x")
	}
	n.Warn(now, "it fails", "stock")
	n.Warn(now.Add(limits.RegistryLogPause), "it fails", "orders")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "of=orders error=x") || !strings.Contains(lines[2], "not_logged=99") {
		t.Errorf("%s", log.String())
	}
	for i := range 3 * limits.RegistryLogSubjects {
		n.Warn(now, "it fails", fmt.Sprint(i))
	}
	if len(n.last) > limits.RegistryLogSubjects {
		t.Errorf("%d subjects are kept in mind", len(n.last))
	}
}

func TestSecret_IsNeitherPrintedNorLogged(t *testing.T) {
	const password = Secret("correct horse")
	config := struct{ Password Secret }{password}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "config", config, "password", password)
	printed := fmt.Sprintf("%v %+v %#v %s %q %x %d", config, config, config, password, password, password, password)
	for _, text := range []string{string(text), log.String(), printed} {
		if strings.Contains(text, string(password)) || strings.Contains(text, fmt.Sprintf("%x", string(password))) {
			t.Errorf("the password is in %s", text)
		}
	}
}
