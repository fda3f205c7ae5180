import { Readable } from 'node:stream';
import type { Write } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import {
  type Command,
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  ModeField,
  pageFields,
} from '../desk/desk.ts';
import { actionNotAllowed, forOperators, pageOf, resourceNotFound } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { isoTime } from '../time.ts';
import type { BankFileSum, BankFiles, PayoutDoc } from './payouts.ts';

/** Files for the bank: made, downloaded, and told to be with it. */
export interface BankFileAdminDeps extends CommandDeps {
  bankFiles: BankFiles;
}

function presentFile({ doc, count, amountTzs }: BankFileSum) {
  return {
    id: doc._id,
    object: 'payout_file',
    mode: doc.mode,
    count,
    amount: amountTzs,
    /** It is still being written, and not to be read yet. */
    is_open: doc.isOpen === true,
    made_by: doc.by,
    created_at: isoTime(doc.at.getTime()),
    sent_at: doc.sentAt ? isoTime(doc.sentAt.getTime()) : null,
    sent_by: doc.sentBy ?? null,
  };
}

/** Tells a payout what an operator did to its file; the audit has a line for each. */
function telling(command: Command) {
  return (doc: PayoutDoc, event: { type: string; file?: string }, writes?: Write[]) => {
    const about = {
      ...{ action: event.type, target: doc._id, merchantId: doc.merchantId },
      ...{ before: { state: doc.state }, after: event.file === undefined ? {} : { file: event.file } },
    };
    return command.send({ machine: 'payout', id: doc._id }, event, about, undefined, writes);
  };
}

export function makeFile(deps: BankFileAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'makePayoutFile',
      'Write what awaits it into a file for the bank',
      201,
      'The payouts by hand that are approved, the oldest first, at most 500. Each is in one file for good.',
      ['action_not_allowed'],
    ),
    body: commandBody('NewPayoutFile', { mode: ModeField }),
    handler: async (command, { body: { mode } }) => {
      const made = await deps.bankFiles.make(mode, command.by, telling(command));
      if (!made) throw actionNotAllowed('No payout awaits the bank.');
      return { status: 201, body: presentFile(made) };
    },
  });
}

export function listFiles({ bankFiles }: BankFileAdminDeps) {
  return forOperators({
    doc: described('listPayoutFiles', 'List files for the bank, newest first', 200),
    query: Type.Object({ mode: ModeField, ...pageFields(idPattern('bkf')) }, { additionalProperties: false }),
    handler: async ({ query }) => {
      const page = pageOf(query);
      const { rows, hasMore } = await bankFiles.list(query.mode, page);
      const next = hasMore ? rows.at(-1)!.doc._id : null;
      return { status: 200, body: { object: 'list', data: rows.map(presentFile), has_more: hasMore, next } };
    },
  });
}

/** @throws action_not_allowed for a file that payouts may still join */
async function closed(bankFiles: BankFiles, id: string) {
  const doc = await found(bankFiles.find(id));
  if (doc.isOpen) {
    throw actionNotAllowed(
      'This file is still being written: ask again in a moment. Where it stays so, its process died; the next file closes it after a minute, and has what is left.',
    );
  }
  return doc;
}

/** GET /admin/payout-files/:id/file.csv, streamed; the same file as often as it is asked for. */
export function downloadFile({ bankFiles }: BankFileAdminDeps) {
  return forOperators({
    doc: {
      ...described(
        'getPayoutFileContent',
        'A file for the bank',
        200,
        'The same each time: a file that is still being written (`is_open`) is refused.',
        ['action_not_allowed'],
      ),
      answers: { 200: { description: 'The file.', contentType: 'text/csv', schema: Type.String() } },
    },
    params: idParam('bkf'),
    query: Type.Object({ mode: Type.Optional(ModeField) }, { additionalProperties: false }),
    handler: async ({ params, query }) => {
      const { _id, mode } = await closed(bankFiles, params.id);
      if (query.mode !== undefined && query.mode !== mode) throw resourceNotFound();
      return {
        status: 200,
        body: Readable.from(bankFiles.file(_id), { objectMode: false }),
        headers: {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="payouts-${mode}-${_id}.csv"`,
        },
      };
    },
  });
}

export function markFileSent(deps: BankFileAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'markPayoutFileSent',
      'The bank has the file',
      200,
      'Its payouts then wait for the bank’s word: a statement’s, or a person’s. Safe to repeat. Not while it is still being written.',
      ['action_not_allowed'],
    ),
    params: idParam('bkf'),
    body: commandBody('PayoutFileSent', {}),
    handler: async (command, { params }) => {
      const doc = await closed(deps.bankFiles, params.id);
      const sent = await deps.bankFiles.markSent(doc, command.by, telling(command));
      return { status: 200, body: presentFile(sent) };
    },
  });
}
