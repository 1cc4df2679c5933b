// Metrics whose values are read at each scrape: what has no value any more disappears.

import { Counter, Gauge, type Registry } from 'prom-client';

/** Undefined: the metric is absent. */
type Values = number | undefined | Iterable<readonly [labels: Readonly<Record<string, string>>, value: number]>;

/** Adds `kube_nvr_<name>`. */
type AddMetric = (
  name: string,
  help: string,
  labelNames: readonly string[],
  values: () => Values | Promise<Values>,
) => void;

export function scraped(registry: Registry): { readonly counter: AddMetric; readonly gauge: AddMetric } {
  const adder =
    (Metric: typeof Counter | typeof Gauge): AddMetric =>
    (name, help, labelNames, values) =>
      void new Metric<string>({
        name: `kube_nvr_${name}`,
        help,
        labelNames: [...labelNames],
        registers: [registry],
        async collect() {
          const found = await values();
          this.reset();
          if (found === undefined) this.remove();
          else if (typeof found === 'number') this.inc(found);
          else for (const [labels, value] of found) this.inc(labels, value);
        },
      });
  return { counter: adder(Counter), gauge: adder(Gauge) };
}
