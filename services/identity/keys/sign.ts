import { isPromise } from '@plat/core'
import { KeyServiceError, type Signer } from '@plat/keys'
import { signJws } from '@plat/tokens'

export interface TokenToSign {
  readonly claims: object
  readonly header?: object
  /** Whose share of a key service's queue is used. */
  readonly namespace: string
  /** Creates the refusal of status 503 for a key that cannot sign now. */
  readonly refuse: (message: string) => Error
}

const NO_HEADER = {}

/** Signs a token; with a key of a key service, returns a promise, which rejects with what `refuse` returns while the service does not sign. */
export function signToken(
  signer: Signer,
  { claims, header = NO_HEADER, namespace, refuse }: TokenToSign,
): string | Promise<string> {
  const token = signJws(signer, header, claims, namespace)
  return isPromise(token) ? orRefused(token, refuse) : token
}

async function orRefused(token: Promise<string>, refuse: TokenToSign['refuse']): Promise<string> {
  try {
    return await token
  } catch (error) {
    if (!(error instanceof KeyServiceError)) throw error
    throw refuse(
      error.kind === 'overloaded'
        ? 'too many tokens wait for the key service: try again later'
        : 'the key service does not sign now: try again later',
    )
  }
}
