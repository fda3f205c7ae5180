import type { FailureCode } from '../../machines/collection.ts';

/** All that the dashboard says, each in English and in Swahili: one that is missing does not compile. */
export type Pair = readonly [english: string, swahili: string];

export const languages = ['en', 'sw'] as const;
export type Language = (typeof languages)[number];

/** What a language is called by those who read it. */
export const languageNames: Readonly<Record<Language, string>> = { en: 'English', sw: 'Kiswahili' };

/** Says a pair in a reader's language. */
export type Say = (pair: Pair) => string;

export function sayIn(language: Language): Say {
  return (pair) => pair[languages.indexOf(language)] ?? pair[0];
}

export const words = {
  // Around every page
  dashboard: ['Dashboard', 'Dashibodi'],
  toContent: ['To the content', 'Nenda kwenye maudhui'],
  pages: ['Pages', 'Kurasa'],
  testMode: ['Test', 'Majaribio'],
  testBanner: ['Test mode: no real money moves here.', 'Hali ya majaribio: hakuna pesa halisi hapa.'],
  liveMode: ['Live', 'Halisi'],
  signOut: ['Sign out', 'Toka'],
  onlyLooking: ['You may look, and change nothing.', 'Unaweza kutazama tu, bila kubadilisha chochote.'],
  today: ['Today', 'Leo'],
  payments: ['Payments', 'Malipo'],
  settlements: ['Money arriving', 'Pesa zinazoingia'],
  balance: ['Balance', 'Salio'],
  webhooks: ['Webhooks', 'Webhook'],
  developers: ['Developers', 'Watengenezaji'],
  changedWhileWriting: [
    'Something changed here while you were writing.',
    'Kuna kilichobadilika hapa wakati ukiandika.',
  ],
  showIt: ['Show it', 'Onyesha'],
  back: ['Back', 'Rudi'],

  // Coming in
  open: ['Open the dashboard', 'Fungua dashibodi'],
  openHint: [
    'This link is good once, for 60 seconds.',
    'Kiungo hiki hutumika mara moja tu, ndani ya sekunde 60.',
  ],
  signedOut: ['You are not signed in', 'Hujaingia'],
  howToSignIn: [
    'You come in by a link: your shop’s system makes one, or the operator of this service gives you one. There is no password.',
    'Unaingia kwa kiungo: mfumo wa duka lako hukitengeneza, au mwendeshaji wa huduma hii hukupa. Hakuna nywila.',
  ],
  sessionOver: [
    'A session ends when you sign out, when nobody looks for 30 minutes, and after 12 hours.',
    'Kikao huisha ukitoka, dakika 30 zikipita bila matumizi, na baada ya saa 12.',
  ],
  forDevelopers: ['How a link is made', 'Jinsi kiungo kinavyotengenezwa'],
  linkIsOver: [
    'This link was used already, or it is too old',
    'Kiungo hiki kimeshatumika, au muda wake umeisha',
  ],
  askForNew: ['Ask for a new one.', 'Omba kiungo kipya.'],

  // What went wrong
  notHere: ['Not here', 'Haipo hapa'],
  notHereWhy: [
    'There is no such page, or nothing of yours with this id.',
    'Hakuna ukurasa huu, au hakuna kitu chako chenye namba hii.',
  ],
  notAllowed: ['Not allowed', 'Hairuhusiwi'],
  viewOnly: [
    'This session may only look. Ask for a link that may manage.',
    'Kikao hiki kinaruhusu kutazama tu. Omba kiungo cha kusimamia.',
  ],
  formTooOld: [
    'This form is out of date. Go back, reload the page and send it again.',
    'Fomu hii imepitwa na wakati. Rudi, fungua ukurasa upya, kisha itume tena.',
  ],
  tooMany: ['Too many at once', 'Maombi ni mengi mno'],
  tooManyWhy: ['Wait a moment, then try again.', 'Subiri kidogo, kisha jaribu tena.'],
  failed: ['That did not work', 'Haikufanikiwa'],
  failedWhy: [
    'The fault is ours. Nothing is lost; try again in a moment.',
    'Kosa ni letu. Hakuna kilichopotea; jaribu tena baada ya muda mfupi.',
  ],
  code: ['code', 'msimbo'],
  request: ['request', 'ombi'],
  at: ['at', 'muda'],
  toToday: ['To today', 'Nenda kwenye leo'],

  // Lists and forms
  newest: ['Newest', 'Mpya zaidi'],
  older: ['Older', 'Za zamani'],
  further: ['Further', 'Zaidi'],
  show: ['Show', 'Onyesha'],
  all: ['All', 'Zote'],
  yes: ['yes', 'ndiyo'],
  no: ['no', 'hapana'],
  fieldFault: ['This is not right:', 'Hii si sahihi:'],
  fieldDescription: ['Name', 'Jina'],
  fieldOverlap: ['Overlap in seconds', 'Muda wa mpito kwa sekunde'],
  fieldTestType: ['Sample in it', 'Mfano wa ndani'],
  hintUrl: [
    'Publicly reachable; https in live mode.',
    'Ipatikane kwenye intaneti; https katika hali halisi.',
  ],
  hintEvents: ['None ticked: the usual three.', 'Usipochagua: yale matatu ya kawaida.'],
  hintOverlap: ['Empty: a day.', 'Usipojaza: siku moja.'],
  hintTestType: ['Which event the sample looks like.', 'Mfano utafanana na tukio lipi.'],
  byDefault: ['none', 'hakuna'],
  restores: ['“none” takes it away.', '“hakuna” huiondoa.'],
  copy: ['Copy', 'Nakili'],
  copied: ['Copied', 'Imenakiliwa'],
  download: ['Download (CSV)', 'Pakua (CSV)'],
  fromDay: ['from', 'kuanzia'],
  toDay: ['to', 'hadi'],
  daysHint: ['Days in Dar es Salaam, both included.', 'Siku za Dar es Salaam, zote mbili zikiwemo.'],
  days: ['Days', 'Siku'],
  allDays: ['all days', 'siku zote'],
  yesterday: ['yesterday', 'jana'],
  lastWeek: ['last 7 days', 'siku 7 zilizopita'],
  thisMonth: ['this month', 'mwezi huu'],
  lastMonth: ['last month', 'mwezi uliopita'],
  status: ['Status', 'Hali'],

  // Payments
  search: ['Search', 'Tafuta'],
  searchHint: ['Order, phone or receipt', 'Oda, simu au risiti'],
  searchAbout: [
    'The whole order reference, phone number, network receipt, or col_ id.',
    'Andika namba kamili ya oda, ya simu, ya risiti, au namba inayoanza na col_.',
  ],
  noPayments: ['No payment like this.', 'Hakuna malipo ya namna hii.'],
  order: ['Order', 'Oda'],
  amount: ['Amount', 'Kiasi'],
  phone: ['Phone', 'Simu'],
  when: ['When', 'Lini'],
  created: ['waiting', 'inasubiri'],
  succeeded: ['paid', 'imelipwa'],
  failedOnes: ['failed', 'imeshindikana'],
  expired: ['ran out', 'muda umeisha'],
  listChanged: ['The list of payments changed.', 'Orodha ya malipo imebadilika.'],
  whatHappened: ['What happened', 'Kilichotokea'],
  itsMoney: ['The money', 'Pesa zake'],
  itsWebhooks: ['What your system was told', 'Taarifa zilizotumwa kwenye mfumo wako'],
  noWebhooks: [
    'Nothing was to be sent: the payment has not ended, or there is no endpoint.',
    'Hakuna cha kutuma: malipo hayajaisha, au hakuna anwani ya kupokea.',
  ],
  details: ['Details', 'Maelezo'],
  receipt: ['Receipt', 'Risiti'],
  fee: ['Fee', 'Ada'],
  net: ['You receive', 'Unapokea'],
  description: ['Description', 'Maelezo ya oda'],
  id: ['Id', 'Namba'],
  begun: ['Asked for', 'Yaliombwa'],
  ended: ['Ended', 'Yaliisha'],
  noMoney: ['No money moved.', 'Hakuna pesa iliyohama.'],

  // Money
  arrivesOn: ['arrives', 'zinaingia'],
  arrived: ['arrived', 'zimeingia'],
  held: ['held back', 'zimezuiliwa'],
  settlement: ['Settlement', 'Pesa za siku'],
  settlementsAbout: [
    'What customers pay is yours to use from midnight of the day that stands here.',
    'Wateja wanacholipa unaweza kukitumia kuanzia saa sita usiku ya siku iliyoandikwa hapa.',
  ],
  noSettlements: ['No money has been on its way yet.', 'Bado hakuna pesa iliyokuwa njiani.'],
  day: ['Day', 'Siku'],
  onItsWay: ['on its way', 'njiani'],
  paymentsOfDay: ['Of these payments', 'Kutokana na malipo haya'],
  pending: ['on its way', 'njiani'],
  pendingAbout: ['Paid by customers, available on its day.', 'Wateja wamelipa; utaipata siku yake.'],
  available: ['available', 'ipo tayari'],
  availableAbout: ['Yours to use.', 'Unaweza kuitumia.'],
  reserved: ['reserved', 'imeshikiliwa'],
  reservedAbout: [
    'Received, and not yet yours: such as a payment that came late.',
    'Imepokelewa ila bado si yako: kwa mfano malipo yaliyochelewa.',
  ],
  whatChanged: ['What changed it', 'Kilichoibadilisha'],
  noChanges: ['Nothing has changed it.', 'Hakuna kilichoibadilisha.'],
  kind: ['What', 'Nini'],
  gross: ['Paid', 'Iliyolipwa'],
  change: ['Change', 'Badiliko'],
  settledOn: ['Arrives on', 'Inaingia'],
  thisPayment: ['payment', 'malipo'],
  usualEvents: ['the usual three', 'yale matatu ya kawaida'],
  ofPayment: ['Of', 'Ya'],

  // Webhooks
  endpoints: ['Where webhooks go', 'Webhook zinakotumwa'],
  noEndpoints: [
    'Nothing is told to your system: register an address.',
    'Mfumo wako haupewi taarifa: sajili anwani.',
  ],
  address: ['Address', 'Anwani'],
  events: ['Events', 'Matukio'],
  health: ['Health', 'Afya'],
  failingSince: ['Failing since', 'Inashindwa tangu'],
  disabledSince: ['Disabled since', 'Imezimwa tangu'],
  active: ['works', 'inafanya kazi'],
  failing: ['failing', 'inashindwa'],
  disabled: ['disabled', 'imezimwa'],
  failingAbout: [
    'No 2xx answer since then. After three days it is disabled.',
    'Hakuna jibu la 2xx tangu hapo. Baada ya siku tatu itazimwa.',
  ],
  disabledAbout: [
    'Nothing is sent to it. Mend it, then enable it: what was held is sent.',
    'Hakuna kinachotumwa. Itengeneze, kisha iwashe: kilichosubiri kitatumwa.',
  ],
  deliveries: ['What was sent', 'Zilizotumwa'],
  noDeliveries: ['Nothing like this.', 'Hakuna ya namna hii.'],
  attempts: ['Attempts', 'Majaribio ya kutuma'],
  event: ['Event', 'Tukio'],
  answer: ['Answer', 'Jibu'],
  nextTry: ['next try', 'itajaribiwa tena'],
  delivered: ['delivered', 'imefika'],
  deliveryPending: ['being sent', 'inatumwa'],
  deliveryHeld: ['held', 'inasubiri'],
  deliveryFailed: ['failed', 'imeshindikana'],
  canceled: ['canceled', 'imefutwa'],
  noAnswer: ['no answer', 'hakuna jibu'],
  resend: ['Send again', 'Tuma tena'],
  newEndpoint: ['New address', 'Anwani mpya'],
  newEndpointHint: ['Its signing secret is shown once.', 'Siri ya sahihi huonyeshwa mara moja tu.'],
  register: ['Register', 'Sajili'],
  changeEndpoint: ['Change it', 'Badilisha'],
  changeHint: ['What stays empty stays as it is.', 'Usichojaza hakitabadilika.'],
  save: ['Change', 'Badilisha'],
  sendTest: ['Send a test event', 'Tuma tukio la majaribio'],
  send: ['Send', 'Tuma'],
  enable: ['Enable it again', 'Iwashe tena'],
  enableSubmit: ['Enable', 'Washa'],
  rotate: ['New signing secret', 'Siri mpya ya sahihi'],
  rotateHint: [
    'Both secrets sign until the overlap ends.',
    'Siri zote mbili zitatia sahihi hadi muda wa mpito uishe.',
  ],
  rotateSubmit: ['Make a new secret', 'Tengeneza siri mpya'],
  remove: ['Delete it', 'Ifute'],
  removeHint: ['For good. Nothing more is sent to it.', 'Moja kwa moja. Hakuna kitakachotumwa tena.'],
  removeSubmit: ['Delete', 'Futa'],
  whatYouCanDo: ['What you can do', 'Unachoweza kufanya'],
  operatorManages: [
    'The operator of this service manages the addresses of live mode.',
    'Mwendeshaji wa huduma hii ndiye anayesimamia anwani za hali halisi.',
  ],
  shownOnce: ['Done. This is shown once.', 'Tayari. Hii huonyeshwa mara moja tu.'],
  secret: ['Signing secret', 'Siri ya sahihi'],
  copyNow: ['Copy it now; nobody can show it again.', 'Inakili sasa; haiwezi kuonyeshwa tena.'],

  // Developers
  keys: ['API keys', 'Funguo za API'],
  keysAbout: [
    'A key is shown once, when the operator issues it. Here are its last four characters.',
    'Ufunguo huonyeshwa mara moja, unapotolewa na mwendeshaji. Hapa ni herufi zake nne za mwisho.',
  ],
  lastFour: ['Ends in', 'Unaishia'],
  lastUsed: ['Last used', 'Ulitumika mwisho'],
  made: ['Made', 'Ulitengenezwa'],
  state: ['State', 'Hali'],
  keyWorks: ['works', 'unafanya kazi'],
  keyRevoked: ['revoked', 'umefutwa'],
  keyExpires: ['ends', 'utaisha'],
  keyEnded: ['ended', 'umeisha'],
  never: ['never', 'bado'],
  refusals: ['Latest requests that were refused', 'Maombi ya karibuni yaliyokataliwa'],
  noRefusals: ['None in the last seven days.', 'Hakuna katika siku saba zilizopita.'],
  requestId: ['Request id', 'Namba ya ombi'],
  what: ['What', 'Nini'],
  why: ['Why', 'Kwa nini'],
  testNumbers: ['Test numbers', 'Namba za majaribio'],
  documentation: ['Documentation', 'Nyaraka'],
  toDocs: ['The guide and the reference', 'Mwongozo na marejeo'],
  toErrors: ['What each error means', 'Maana ya kila kosa'],
  toTestMode: ['Test mode', 'Hali ya majaribio'],
  toWebhookDocs: ['How webhooks are verified', 'Jinsi ya kuthibitisha webhook'],

  // Today
  countedLately: ['Counted every minute.', 'Huhesabiwa kila dakika.'],
  received: ['received', 'zilizopokelewa'],
  whyNot: ['Why payments were not made today', 'Kwa nini malipo ya leo hayakufanikiwa'],
  nobodyInTime: ['nobody entered the PIN in time', 'PIN haikuwekwa kwa wakati'],
  lastDays: ['The last days', 'Siku za karibuni'],
  asTable: ['As a table', 'Kama jedwali'],
  nothingYet: ['Nothing yet.', 'Bado hakuna.'],
  notKnown: ['not known', 'haijulikani'],
  hookDisabled: ['Webhooks are no longer sent to', 'Webhook hazitumwi tena kwa'],
  hookFailing: ['Webhooks do not arrive at', 'Webhook hazifiki kwa'],
  moneyHeld: ['The operator holds back the money of', 'Mwendeshaji amezuia pesa za'],
  needsYou: ['Needs you', 'Inakuhitaji'],
  latest: ['Latest payments', 'Malipo ya karibuni'],
  allPayments: ['All payments', 'Malipo yote'],
} as const satisfies Record<string, Pair>;

/** Why a payment failed, as one tells the customer. */
export const failureWords: Readonly<Record<FailureCode, Pair>> = {
  insufficient_funds: ['the customer’s wallet does not hold enough money', 'salio la mteja halitoshi'],
  declined: ['the customer declined', 'mteja amekataa'],
  cancelled: ['the customer cancelled', 'mteja ameghairi'],
  rejected: ['the network refused the request', 'mtandao umekataa ombi'],
  invalid_pin: ['the customer entered a wrong PIN', 'mteja ameweka PIN isiyo sahihi'],
  payer_not_found: ['this number has no mobile-money wallet', 'namba hii haina akaunti ya pesa za simu'],
  payer_limit_reached: [
    'it is beyond a limit of the customer’s wallet',
    'kimezidi kikomo cha akaunti ya mteja',
  ],
  payer_blocked: ['the customer’s wallet is blocked', 'akaunti ya mteja imefungwa'],
  payer_busy: [
    'other payments were waiting on this phone; nothing was charged',
    'simu hii ilikuwa na malipo mengine yanayosubiri; hakuna kilichokatwa',
  ],
  provider_unavailable: [
    'the network could not be reached; nothing was charged',
    'mtandao haukupatikana; hakuna kilichokatwa',
  ],
  provider_error: ['the network reported an error', 'mtandao umetoa hitilafu'],
};
