package business

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fulmar-rpc/fulmar/test/kitexshape/gen/kitex/inner"
	"github.com/fulmar-rpc/fulmar/test/kitexshape/gen/kitex/outer"
)

// Nested uses fields and methods of embedded structs as those of the structs around them.
func Nested() (string, error) {
	request := &outer.Request{Base: &inner.Base{Caller: "me"}, Id: 1, Size: outer.NewSize(), Point: &outer.Point{X: 2}}
	height := int32(5)
	request.Height, request.Y = &height, 3
	request.Base.SetExtra(map[string]string{"key": "value"})
	request.SetOrigin(&inner.Origin{Caller: "nobody"})
	out := fmt.Sprint(request.Width, request.GetHeight(), request.X, request.Point.Y, request.Base.Extra, request.GetBase().GetCaller(),
		request.IsSetHeight(), request.IsSetOrigin(), request.IsSetPlain(), request.GetOrigin().Caller, outer.Request_Size_DEFAULT == nil)

	aliased := outer.NewAliased()
	out += fmt.Sprint(aliased.Format.Width, aliased.GetWidth(), aliased.IsSetFormat())
	chain := &outer.Chain{Chain: &outer.Chain{Depth: 2}, Depth: 1}
	out += fmt.Sprint(chain.Depth, chain.Chain.Depth, chain.GetChain().GetChain() == nil)
	either := &outer.Either{Point: &outer.Point{X: 9}}
	out += fmt.Sprint(either.CountSetFieldsEither(), either.X, either.IsSetNumber())

	var err error = &outer.Failed{Size: &outer.Size{Width: 4}, Code: 3}
	failed, ok := errors.AsType[*outer.Failed](err)
	if !ok || failed.Width != 4 {
		return "", err
	}
	err = &outer.Reply{Failed: failed} // which has the method of what it embeds
	reply, ok := errors.AsType[*outer.Reply](err)
	if !ok || reply.Code != 3 || reply.GetFailed() != failed {
		return "", err
	}
	reply.Requests = []*outer.Request{request}
	text, err := json.Marshal(reply)
	if err != nil {
		return "", err
	}
	again := outer.NewReply()
	if err := json.Unmarshal(text, again); err != nil {
		return "", err
	}
	return out + string(text) + again.Requests[0].Base.Caller, nil
}
