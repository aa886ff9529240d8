import { UpstreamError } from '../../call/index.ts'

/**
 * The provider sent a response that is not valid in its dialect, or reported that it failed. `what` completes the sentence "the upstream sent …".
 * It never quotes the response, which may quote the caller.
 */
export class InvalidResponseError extends UpstreamError {
  readonly what: string

  constructor(what: string) {
    super(`the upstream sent ${what}`)
    this.name = 'InvalidResponseError'
    this.what = what
  }
}
