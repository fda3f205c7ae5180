/** What a receiver of webhooks needs. Nothing of it asks the service. */
export { type Handler, type HandlerOptions, handler } from './handler.ts';
export { type NodeRequest, type NodeResponse, toNode } from './node.ts';
export {
  type SignatureHeaders,
  SignatureRefused,
  type SignOptions,
  sign,
  type VerifyOptions,
  type VerifyRefusal,
  verify,
} from './signature.ts';
