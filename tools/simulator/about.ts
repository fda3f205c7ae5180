/** What of this simulator is Vodacom's and what is ours: nobody should mistake the model for the network. */
export interface Behaviour {
  behaviour: string;
  /** `documented` by Vodacom, `observed` by implementers, or `modelled`: nobody told us, and we chose. */
  is: 'documented' | 'observed' | 'modelled';
  source: string;
}

const openApi = 'OpenAPI portal, vodacomTZN';

export const behaviours: readonly Behaviour[] = [
  {
    behaviour: 'bearer: base64 of RSA PKCS1 v1.5 of the API key, then of the session id',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour: 'getSession answers INS-0 with output_SessionID, or 400 INS-989',
    is: 'documented',
    source: openApi,
  },
  { behaviour: 'an Origin header is required', is: 'documented', source: openApi },
  {
    behaviour: 'an Origin that is no trusted source: INS-989 for a session, the gate for the rest',
    is: 'modelled',
    source: 'trusted sources are documented, what happens to others is not',
  },
  { behaviour: 'a session may take up to 30 s to become live', is: 'documented', source: 'official samples' },
  {
    behaviour: 'one session at a time: a new one that has become live ends those before it',
    is: 'modelled',
    source: 'not documented; the harder case',
  },
  {
    behaviour: 'a restart of the network ends no session, and gives no limits back',
    is: 'modelled',
    source: 'not documented',
  },
  {
    behaviour: 'limits of one session: INS-990 to INS-995; none is set unless asked for',
    is: 'documented',
    source: 'a new session has them anew',
  },
  {
    behaviour: 'INS-996 outside the usage hours, INS-997 for what is not enabled',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour: 'too many calls in a second: 429 from the gate, without a code',
    is: 'modelled',
    source: 'rate limits are not documented',
  },
  {
    behaviour: 'INS-13 for a short code of somebody else',
    is: 'documented',
    source: 'text of the result code',
  },
  {
    behaviour: 'a session lives one hour',
    is: 'modelled',
    source: 'set per application in the portal; no default is documented',
  },
  {
    behaviour: 'the gate answers 401 {"output_error"} without a code',
    is: 'observed',
    source: 'hotspot-billing',
  },
  { behaviour: 'field patterns, and INS-20 for a missing field', is: 'documented', source: openApi },
  { behaviour: 'which code each field has', is: 'documented', source: 'texts of the result codes' },
  { behaviour: 'INS-30 for punctuation in the item description', is: 'observed', source: 'Lesotho sandbox' },
  {
    behaviour: 'INS-26 and INS-998 for a wrong currency and country',
    is: 'modelled',
    source: 'texts of the result codes',
  },
  {
    behaviour: 'synchronous: the call stays open while the customer types, and answers the outcome',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour: 'asynchronous: INS-0 without a transaction id, a callback later',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour: 'the address of callbacks is configured',
    is: 'modelled',
    source: 'sources contradict each other',
  },
  { behaviour: 'the form of a callback and of its answer', is: 'documented', source: openApi },
  {
    behaviour: 'a callback is sent once and nothing is signed',
    is: 'modelled',
    source: 'no retry and no signature is documented',
  },
  {
    behaviour: 'callbacks also in synchronous mode, where an address is configured',
    is: 'modelled',
    source: 'a harder test',
  },
  {
    behaviour: 'INS-10 (409) for a conversation id that was used, also while it is pending',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour: 'INS-10 also after a restart, and for a push that is never found',
    is: 'modelled',
    source: 'nothing is documented about its memory',
  },
  {
    behaviour: 'INS-9 (408) when the customer does not answer',
    is: 'observed',
    source: 'mpesa_sdk_dart#2, mpesa-js-sdk#44',
  },
  {
    behaviour: 'a second prompt for a phone on which one stands: INS-6 at once, and nobody sees it',
    is: 'modelled',
    source: 'INS-6 and INS-9 are reported',
  },
  {
    behaviour:
      'customers take 12 s at the median, some several times as long; calls 150 ms (log-logistic, seeded)',
    is: 'modelled',
    source: 'ours',
  },
  { behaviour: 'the prompt lives 100 s', is: 'modelled', source: 'not documented' },
  {
    behaviour: 'query by conversation id, transaction id or OpenAPI conversation id; its pattern',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour: 'INS-0 of a query only says that it was answered; Completed and output_Reversed decide',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour: 'the words Pending, Cancelled, Expired, Failed and N/A',
    is: 'modelled',
    source: 'documented for Mozambique only',
  },
  {
    behaviour: 'INS-23 before a payment is indexed (240 s on the scripted number)',
    is: 'observed',
    source: 'nimr-tz, hotspot-billing',
  },
  {
    behaviour: 'INS-6140 before a payment is indexed, on a number of its own',
    is: 'observed',
    source: 'clients that treat it as INS-23',
  },
  {
    behaviour: 'the statement: its columns, charges as rows of their own, what failed among it',
    is: 'modelled',
    source: 'published samples of the organisation export (GET /_sim/statement.csv?date=)',
  },
  { behaviour: 'a query answers with no amount', is: 'documented', source: openApi },
  { behaviour: 'reversal by transaction id; INS-18 for an unknown one', is: 'documented', source: openApi },
  {
    behaviour: 'INS-35 for a payment of another short code, INS-2006 where the short code has too little',
    is: 'documented',
    source: 'texts of the result codes',
  },
  {
    behaviour:
      'asynchronous: a reversal’s INS-0 names no transaction; its callback names its own conversation id',
    is: 'modelled',
    source: 'documented for the push, and taken to hold for the reversal',
  },
  {
    behaviour: 'a second reversal: INS-10 with the same conversation id, INS-6 with another',
    is: 'modelled',
    source: 'not documented',
  },
  {
    behaviour: 'a payout (b2cPayment): its fields, and INS-0 with a transaction id',
    is: 'documented',
    source: openApi,
  },
  {
    behaviour:
      'a payout: INS-2006 where the short code holds too little, INS-10 for a conversation id that was used',
    is: 'documented',
    source: 'texts of the result codes',
  },
  {
    behaviour: 'a payout is paid within 2 s, and asked about and called back as a payment is',
    is: 'modelled',
    source: 'not documented',
  },
  {
    behaviour: 'a payout that comes back: Completed with output_Reversed, and a line of the statement',
    is: 'modelled',
    source: 'documented for payments',
  },
  { behaviour: 'HTTP status of INS-23 (400)', is: 'modelled', source: 'not documented' },
  { behaviour: 'scripted numbers 2557400000xx', is: 'modelled', source: 'ours' },
];
