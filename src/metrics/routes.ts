import { Type } from 'typebox';
import { forOperators } from '../http/http.ts';
import type { Gauges, Metrics } from './metrics.ts';

export interface MetricsDeps {
  metrics: Metrics;
  gauges: Gauges;
}

/** GET /metrics, for Prometheus, which sends an operator's token of any role. */
export function showMetrics({ metrics, gauges }: MetricsDeps) {
  const contentType = 'text/plain; version=0.0.4; charset=utf-8';
  return forOperators({
    doc: {
      id: 'getMetrics',
      summary: 'Metrics of this process',
      description:
        'In the text format of Prometheus. Gauges are the same on every process: take their maximum.',
      tag: 'Operators',
      answers: { 200: { description: 'Done.', contentType, schema: Type.String() } },
    },
    handler: async () => {
      await gauges.refresh();
      return { status: 200, body: await metrics.text(), headers: { 'Content-Type': contentType } };
    },
  });
}
