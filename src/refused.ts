/** What was asked is not possible now; the message says why, for whoever asked. It is answered 409 (CONTRACT 4.2). */
export class Refused extends Error {}
