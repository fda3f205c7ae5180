import { Type } from 'typebox';
import { type CommandDeps, commandBody, described, forCommands } from '../desk/desk.ts';
import { forOperators, listAnswer } from '../http/http.ts';
import { limits } from '../limits.ts';
import type { AuditWatch, Day } from './ledger.ts';

/** The auditor as operators read it: what it found, and which days are proven. */
interface AuditAdminDeps extends CommandDeps {
  auditWatch: AuditWatch;
}

export function showAudit({ auditWatch }: AuditAdminDeps) {
  return forOperators({
    doc: described(
      'getLedgerAudit',
      'What the auditor found',
      200,
      'The latest audit of what is new, the latest night’s (`full`), how far the proof of the past is, and the breaches that were told and are not gone.',
    ),
    handler: async () => {
      const [state, proof] = await Promise.all([auditWatch.state(), auditWatch.proof()]);
      const { recent, full, night, whole, open, staleSince } = state;
      return {
        status: 200,
        body: {
          object: 'ledger_audit',
          is_clean: open.length === 0 && staleSince === undefined,
          /** Since when no audit has ended that should have. */
          stale_since: staleSince?.toISOString() ?? null,
          recent: presentAudit(recent),
          full: presentAudit(full),
          /** The latest night, or the one that is going on. */
          night: night
            ? {
                started_at: night.startedAt.toISOString(),
                ended_at: night.endedAt?.toISOString() ?? null,
                /** All days are proven again, not a thirtieth looked at. */
                is_whole: night.isWhole,
                /** The day that it is at, or was at last. */
                at: night.part,
                days_done: night.done.length,
                /** Of days that were looked at before; null until it has come so far. */
                days_due: night.due?.length ?? null,
              }
            : null,
          /** Days that are over. */
          days: {
            proven: proof.proven,
            not_proven: proof.notProven,
            /** No night has come to these yet, at the most. */
            left: proof.left,
            /** Before this moment everything is proven and sealed, from the first entry on. */
            verified_up_to: proof.verifiedUpTo?.toISOString() ?? null,
          },
          /** The latest audit of everything that somebody asked for. */
          whole: whole
            ? {
                ...{ asked_at: whole.askedAt.toISOString(), asked_by: whole.by },
                ended_at: whole.endedAt?.toISOString() ?? null,
              }
            : null,
          open_breaches: open.map(presentBreach),
        },
      };
    },
  });
}

type Audited = Awaited<ReturnType<AuditWatch['state']>>;

/** Each kind of breach has figures of its own. */
function presentBreach({ breach, says, firstSeenAt, lastSeenAt }: Audited['open'][number]) {
  const told: Readonly<Record<string, unknown>> = breach;
  const seen = { first_seen_at: firstSeenAt.toISOString(), last_seen_at: lastSeenAt.toISOString() };
  return Object.assign({}, told, says === undefined ? {} : { says }, seen);
}

/** Null until the first audit of its kind has ended. */
function presentAudit(audit: Audited['recent']) {
  if (!audit) return null;
  return {
    at: audit.at.toISOString(),
    duration_ms: audit.tookMs,
    breaches: audit.breaches,
    is_truncated: audit.isTruncated,
    checked: audit.checked,
  };
}

const EatDate = Type.String({ maxLength: 10, pattern: '^\\d{4}-\\d{2}-\\d{2}$' });

export function listLedgerDays({ auditWatch }: AuditAdminDeps) {
  return forOperators({
    doc: described(
      'listLedgerDays',
      'Days of the books that are over, the latest first',
      200,
      'Which are proven, since when, by which edition of the rules, and what they are sealed with.',
    ),
    query: Type.Object(
      {
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.listMax, default: 31 })),
        starting_after: Type.Optional(EatDate),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query: { limit = 31, starting_after: before } }) => {
      const days = await auditWatch.days({ limit: limit + 1, before });
      return { status: 200, body: listAnswer(days.slice(0, limit).map(presentDay), days.length > limit) };
    },
  });
}

function presentDay(day: Day) {
  return {
    id: day._id,
    object: 'ledger_day',
    /** Earlier than its midnight where nothing happened on the days before; null where the books begin. */
    from: day.from?.toISOString() ?? null,
    until: day.until.toISOString(),
    entries: day.journal.map(({ mode, entries, hash }) => ({ mode, count: entries, hash })),
    events: day.events.count,
    /** When all rules held that were asked last; null where something does not. */
    proven_at: day.provenAt?.toISOString() ?? null,
    rules_edition: day.edition,
    checked_at: day.checkedAt.toISOString(),
    duration_ms: day.tookMs,
    breaches: day.breaches,
    seal: day.seal,
    /** Since when its entries may be gone. */
    removed_at: day.removedAt?.toISOString() ?? null,
  };
}

export function askWholeAudit(deps: AuditAdminDeps) {
  const { auditWatch } = deps;
  return forCommands(deps, {
    doc: described(
      'auditWholeLedger',
      'Audit everything',
      202,
      'Proves every day anew and everything that is open. A worker begins within a minute, and goes on after a restart at the day it was at; `GET /admin/ledger/audit` says how far it is. Asked again it begins anew.',
    ),
    body: commandBody('WholeAudit', {}),
    handler: async (command) => {
      const { at, by } = command;
      const about = { action: 'ledger.audited', target: 'ledger', after: { askedAt: new Date(at) } };
      await command.commit([auditWatch.wholeAsked(by, at)], about);
      return {
        status: 202,
        body: { object: 'whole_audit', asked_at: new Date(at).toISOString(), asked_by: by },
      };
    },
  });
}
