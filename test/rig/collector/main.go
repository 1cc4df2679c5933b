// A collector of OpenTelemetry for tests: the collector's own receiver of OTLP over HTTPS, whose logs become lines of a file.
// Usage: collector ADDRESS CERTIFICATE KEY FILE. Prints "ready", and ends when its standard input does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, certificate, key, file string) error {
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	settings := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{
		"endpoint": address,
		"tls":      map[string]any{"cert_file": certificate, "key_file": key},
	}}})
	if err := settings.Unmarshal(config); err != nil {
		return err
	}
	write, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		line, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
		if err != nil {
			return err
		}
		_, err = out.Write(append(line, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	receiver, err := factory.CreateLogs(ctx, receivertest.NewNopSettings(factory.Type()), config, write)
	if err != nil {
		return err
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return receiver.Shutdown(ctx)
}
