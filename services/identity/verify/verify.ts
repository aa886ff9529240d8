import { Body, type Endpoint, RefusalError } from '@plat/http/endpoints'
import { isSessionFault, type Sessions } from '../sessions/sessions.ts'

const FIELDS: ReadonlySet<string> = new Set(['token', 'audience'])

/** `POST /v1/token/verify`: 200 for every body that says which token, whatever the verdict (docs/spec/broker-api.md). */
export function verifyEndpoint(sessions: Sessions): Endpoint {
  return {
    path: '/v1/token/verify',
    opensWith: 'token',
    takes: 'json',
    errors: 'text',
    async handle(bytes) {
      const body = Body.parse(bytes, FIELDS)
      const token = body.text('token')
      if (token === null || token === '') throw new RefusalError(400, 'token is required')
      const audience = body.text('audience')
      const answer = await sessions.verify(token, audience === null || audience === '' ? undefined : audience)
      return isSessionFault(answer) ? { valid: false, error: answer.message } : { valid: true, claims: answer.members }
    },
  }
}
