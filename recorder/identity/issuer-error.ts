// Why an issuer has not said who a person is. In a file of its own, because the library that asks issuers is loaded when it is needed.

import { CodedError } from '../../base/error.ts';

/** `refused`: the person or the issuer has refused. `away`: the issuer does not answer as it should. `invalid`: what came is not its word. */
export class IssuerError extends CodedError<'refused' | 'away' | 'invalid'> {
  override readonly name = 'IssuerError';
}
