import { Type } from 'typebox';
import { type Config, merchantsUrlOf } from '../config.ts';
import {
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  ModeField,
} from '../desk/desk.ts';
import { actionNotAllowed } from '../http/http.ts';
import { isoTime } from '../time.ts';
import { dashboardRoles, type Merchants, newDashboardLink } from './merchants.ts';

interface DashboardAdminDeps extends CommandDeps {
  merchants: Merchants;
  config: Pick<Config, 'publicBaseUrl' | 'port'>;
}

/** An operator's link into a merchant's dashboard (CONTRACT 24.2): for the merchant, or to see what they see. */
export function openDashboard(deps: DashboardAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'openDashboard',
      'Make a link into a merchant’s dashboard',
      201,
      'Good once, within 60 seconds. What its session changes carries its id, `dsh_…`, which the audit has too.',
      ['action_not_allowed'],
    ),
    once: true,
    params: idParam('mer'),
    body: commandBody('NewDashboardLink', { mode: ModeField, role: Type.Enum([...dashboardRoles]) }),
    handler: async (command, { params, body: { mode, role } }) => {
      const { _id: merchantId, suspended } = await found(deps.merchants.find(params.id));
      if (suspended) throw actionNotAllowed('This merchant is suspended: nobody gets into its dashboard.');
      const asked = { merchantId, mode, role, operator: command.by, atMs: command.at };
      const { record, url, writes } = newDashboardLink(asked, merchantsUrlOf(deps.config));
      const after = { id: record._id, object: 'dashboard_link', merchant_id: merchantId, mode, role };
      const about = { action: 'dashboard.opened', target: record._id, merchantId, after };
      await command.commit(writes, about);
      const expiresAt = isoTime(record.expiresAt.getTime());
      return { status: 201, body: { ...after, url, expires_at: expiresAt } };
    },
  });
}
