import { isFault, type Verifier } from '@plat/tokens'
import { Body } from '../serve/body.ts'
import { type Endpoint, Refusal } from '../serve/endpoint.ts'

const FIELDS: ReadonlySet<string> = new Set(['token', 'audience'])

/** `POST /v1/token/verify`: 200 for every body that says which token, whatever the verdict (document 1). */
export function verifyEndpoint(verifier: Verifier): Endpoint {
  return {
    path: '/v1/token/verify',
    async handle(bytes) {
      const body = new Body(bytes, FIELDS)
      const token = body.text('token')
      if (token === null || token === '') throw new Refusal(400, 'token is required')
      const audience = body.text('audience')
      const answer = await (audience === null || audience === ''
        ? verifier.verify(token)
        : verifier.verify(token, audience))
      return isFault(answer) ? { valid: false, error: answer.message } : { valid: true, claims: answer.members }
    },
  }
}
