import { Type } from 'typebox';
import { type Endpoint, forOperators, type OperatorPrincipal } from '../http/http.ts';
import type { OverviewReader } from './overview.ts';
import { ModeField, operation } from './routes.ts';

export interface OverviewAdminDeps {
  overview: OverviewReader;
}

export function showOverview({ overview }: OverviewAdminDeps): Endpoint<OperatorPrincipal> {
  return forOperators({
    operation: operation(
      'getOverview',
      'What needs a person, and how the service does',
      200,
      'No tile in `needs_you` means there is nothing to do. Each `link` is the list behind its tile. Counts stop at 1,000 (`is_more`).',
    ),
    query: Type.Object({ mode: ModeField }, { additionalProperties: false }),
    handler: async ({ query }) => ({
      status: 200,
      body: await overview.read(query.mode as 'live' | 'test'),
    }),
  });
}
