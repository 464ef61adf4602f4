package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// protobufFile is a file of which plugins of protoc make a Go package.
type protobufFile struct {
	name string
	// folder is where the package is, within the output folder.
	folder, goName string
	plugins        []plugin
}

type plugin struct{ name, parameter string }

// protobuf runs plugins of protoc, whose part protocompile plays: it parses, and
// hands them descriptors.
func protobuf(ctx context.Context, idl string, from protobufFile, output string) error {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{idl}}, SourceInfoMode: protocompile.SourceInfoStandard}
	files, err := compiler.Compile(ctx, from.name)
	if err != nil {
		return err
	}
	var descriptors []*descriptorpb.FileDescriptorProto
	for _, file := range files {
		descriptors = append(descriptors, protoutil.ProtoFromFileDescriptor(file))
	}
	parameter := "paths=source_relative,M" + from.name + "=" + prefix + "/" + from.folder + ";" + from.goName
	for _, plugin := range from.plugins {
		request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
			FileToGenerate: []string{from.name},
			Parameter:      proto.String(strings.TrimSuffix(parameter+","+plugin.parameter, ",")),
			ProtoFile:      descriptors,
		})
		if err != nil {
			return err
		}
		if err := runPlugin(ctx, plugin.name, request, filepath.Join(output, from.folder)); err != nil {
			return fmt.Errorf("%s: %w", plugin.name, err)
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
