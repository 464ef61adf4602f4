package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// protobuf makes messages with protoc-gen-go and the service with
// protoc-gen-go-grpc. Both are plugins of protoc, whose part protocompile
// plays: it parses, and hands them descriptors.
func protobuf(ctx context.Context, folder, name, output string) error {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{folder}}, SourceInfoMode: protocompile.SourceInfoStandard}
	files, err := compiler.Compile(ctx, name)
	if err != nil {
		return err
	}
	var descriptors []*descriptorpb.FileDescriptorProto
	for _, file := range files {
		descriptors = append(descriptors, protoutil.ProtoFromFileDescriptor(file))
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name},
		Parameter:      proto.String("paths=source_relative,M" + name + "=" + prefix + "/protobuf;echopb"),
		ProtoFile:      descriptors,
	})
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := runPlugin(ctx, plugin, request, filepath.Join(output, "protobuf")); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

func runPlugin(ctx context.Context, plugin string, request []byte, output string) error {
	answer, err := pipe(ctx, request, plugin)
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, file := range response.File {
		if !filepath.IsLocal(file.GetName()) {
			return fmt.Errorf("wants to write %q", file.GetName())
		}
		path := filepath.Join(output, file.GetName())
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.GetContent()), 0o666); err != nil {
			return err
		}
	}
	return nil
}
