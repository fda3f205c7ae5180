import type { NewActor } from '@kusanya/durable-actors';
import type { DestinationInput } from '../../machines/destination.ts';
import { parsePhone } from '../collections/collections.ts';
import type { Config } from '../config.ts';
import { newId } from '../ids.ts';
import type { Rails } from '../rails/rails.ts';
import type { Whose } from '../whose.ts';
import { type Account, byHand, type DestinationData } from './documents.ts';

/** What an operator enters. */
export interface EnteredDestination extends Account, Whose {
  /** `manual`, or a network's name; absent: the network for wallets where it pays, else by hand. */
  rail?: string | undefined;
}

interface DestinationsOptions {
  config: Pick<Config, 'payouts'>;
  rails: Rails;
}

/** Where payouts may go: entered by one operator, confirmed by another, and rested. */
export class Destinations {
  readonly #options: DestinationsOptions;

  constructor(options: DestinationsOptions) {
    this.#options = options;
  }

  /** A destination to be created. @throws RangeError for an account that `accountFault` has not passed */
  newDestination(entered: EnteredDestination, by: string, at: number): NewActor {
    const { merchantId, mode, kind, name, bank } = entered;
    const restMs = mode === 'live' ? this.#options.config.payouts.destinationRestMs : 0;
    const input = { at, restMs, enteredBy: by, needsSecond: mode === 'live' } satisfies DestinationInput;
    const data: DestinationData = {
      account: { kind, name, number: numberOf(entered), ...(bank === undefined ? {} : { bank }) },
      rail: this.#railOf(entered),
      createdAt: new Date(at),
    };
    return { machine: 'destination', id: newId('dst', at), input, merchantId, mode, data };
  }

  /** In test mode all kinds are paid by the rail that plays the network, unless the file for the bank is rehearsed. */
  #railOf({ mode, kind, rail }: EnteredDestination): string {
    const network = this.#options.rails[mode];
    if (rail !== undefined) return rail;
    const isPaid = network?.payouts !== undefined && (kind === 'wallet' || mode === 'test');
    return isPaid ? network.name : byHand;
  }

  /** Why a rail cannot pay this; undefined: it can. */
  railFault({ mode, kind, rail }: EnteredDestination): string | undefined {
    if (rail === undefined || rail === byHand) return undefined;
    const network = this.#options.rails[mode];
    if (network?.name !== rail || !network.payouts) return `${rail} pays nobody in ${mode} mode here.`;
    return kind === 'wallet' || mode === 'test' ? undefined : `${rail} pays wallets only.`;
  }
}

/** What is wrong with an account, by the field; undefined: nothing. */
export function accountFault({
  kind,
  number,
  bank,
}: Account): { param: string; message: string } | undefined {
  if (kind === 'wallet') {
    const phone = parsePhone(number);
    if ('fault' in phone) return { param: 'number', message: phone.fault.replace(/\bphone\b/, 'number') };
  }
  if (kind === 'till' && !/^\d{5,10}$/.test(number))
    return { param: 'number', message: 'number of a till is 5 to 10 digits.' };
  if (kind === 'bank_account' && !/^[0-9A-Za-z][0-9A-Za-z -]{3,33}$/.test(number))
    return {
      param: 'number',
      message: 'number of an account is 4 to 34 letters, digits, spaces and dashes.',
    };
  if (kind === 'bank_account' && bank === undefined)
    return { param: 'bank', message: 'bank is required with a bank_account.' };
  if (kind !== 'bank_account' && bank !== undefined)
    return { param: 'bank', message: 'bank goes with a bank_account.' };
  return undefined;
}

/** As it is stored: a wallet's as `255XXXXXXXXX`. */
function numberOf({ kind, number }: Account): string {
  if (kind !== 'wallet') return number.trim();
  const phone = parsePhone(number);
  if ('fault' in phone) throw new RangeError('an unchecked number reached the room');
  return phone.msisdn;
}
