import { Type } from 'typebox';
import { forOperators } from '../http/http.ts';
import type { OverviewReader } from './overview.ts';
import { described, ModeField } from './routes.ts';

export interface OverviewAdminDeps {
  overview: OverviewReader;
}

export function showOverview({ overview }: OverviewAdminDeps) {
  return forOperators({
    doc: described(
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
