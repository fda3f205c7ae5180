// Command manifests loads what operators are given by the very libraries that will read it.
//
//	manifests compose FILE       prints the project as Docker Compose understands it, as JSON; the environment fills it in
//	manifests kubernetes         reads manifests from standard input and prints what is wrong with them, a line each
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(words []string) error {
	switch {
	case len(words) == 2 && words[0] == "compose":
		return compose(words[1])
	case len(words) == 1 && words[0] == "kubernetes":
		return kubernetes(os.Stdin)
	}
	return errors.New("usage: manifests compose FILE | manifests kubernetes")
}

func compose(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithOsEnv, cli.WithProfiles([]string{"*"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	if _, err := project.GetServices(project.ServiceNames()...); err != nil {
		return err
	}
	text, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// kubernetes reads each document strictly (no field that its kind does not have) and holds pods to "restricted".
func kubernetes(from io.Reader) error {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		return err
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	documents := yamlutil.NewYAMLReader(bufio.NewReader(from))
	for count := 0; ; count++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			if count == 0 {
				return errors.New("there are no manifests")
			}
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return fmt.Errorf("%w in\n%s", err, document)
		}
		var pod *corev1.PodTemplateSpec
		var name string
		switch object := object.(type) {
		case *appsv1.Deployment:
			pod, name = &object.Spec.Template, object.Name
		case *appsv1.StatefulSet:
			pod, name = &object.Spec.Template, object.Name
		}
		if pod == nil {
			continue
		}
		for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				text, _ := json.Marshal(result.ForbiddenDetail)
				fmt.Printf("%s %s: %s: %s\n", kind.Kind, name, result.ForbiddenReason, text)
			}
		}
	}
}
