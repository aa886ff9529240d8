/** Characters of a message: a key service can name keys and algorithms at any length. */
const MAX_MESSAGE_LENGTH = 500

/**
 * A key service did not do what was requested. `overloaded`: too many requests wait for it already. `unavailable`: it does not respond, or not in
 * time. `refused`: it refused the request, for example since the key is disabled. The message names the key and contains no secret.
 */
export class KeyServiceError extends Error {
  readonly kind: 'overloaded' | 'unavailable' | 'refused'

  constructor(kind: KeyServiceError['kind'], message: string, options?: ErrorOptions) {
    super(message.slice(0, MAX_MESSAGE_LENGTH), options)
    this.name = 'KeyServiceError'
    this.kind = kind
  }
}
