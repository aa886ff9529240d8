import { isObject } from '@plat/core'
import { Body, CodedRefusalError, decodeSession, SESSION_FIELDS } from '@plat/http/endpoints'
import type { Release } from './release.ts'

/** Content of a new release, without the members that the service adds. */
export type ReleaseRequest = Pick<Release, 'name' | 'session' | 'checks' | 'digests' | 'isolation' | 'endsAt'>

const FIELDS: ReadonlySet<string> = new Set(['session', 'checks', 'digests', 'isolation', 'endsAt'])

/** Maximum number of checks, and of measurements, in a release. */
const MAX_CHECKS = 8
const MAX_DIGESTS = 32

/** Names of checks as the broker has them, and of what isolates. */
const WORD = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/
/** A measurement in the form of claim `plat_substrate.digest`. */
const DIGEST = /^[A-Za-z0-9:+._/-]{1,256}$/
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/

/** The body of `POST /v1/releases`. Throws a `Refusal` that names the field. */
export function decodeReleaseRequest(bytes: Uint8Array): ReleaseRequest {
  const body = Body.parse(bytes, FIELDS)
  const members = body.object('session', SESSION_FIELDS)
  const session = body.value('session')
  if (members === null || !isObject(session)) throw invalid('session is required')
  const { namespace, agent, session: name } = decodeSession(members)
  const checks = matching(body, 'checks', { pattern: WORD, most: MAX_CHECKS })
  if (checks.length === 0) throw invalid('checks: name at least one check that may verify the evidence')
  const isolation = body.text('isolation')
  if (isolation !== null && !WORD.test(isolation)) throw invalid('isolation: must be a word such as tee')
  return {
    name: { namespace, agent, session: name },
    session,
    checks,
    digests: matching(body, 'digests', { pattern: DIGEST, most: MAX_DIGESTS }),
    isolation,
    endsAt: time(body, 'endsAt'),
  }
}

export function releaseIdIn(body: Body): string {
  const id = body.text('releaseId')
  if (id === null || id === '') throw invalid('releaseId is required')
  return id
}

function matching(
  body: Body,
  name: string,
  { pattern, most }: { readonly pattern: RegExp; readonly most: number },
): string[] {
  const list = body.texts(name)
  if (list.length > most) throw invalid(`${name}: at most ${most} entries`)
  if (!list.every((entry) => pattern.test(entry))) throw invalid(`${name}: an entry is malformed`)
  return [...list]
}

function time(body: Body, name: string): number | null {
  const text = body.text(name)
  if (text === null) return null
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw invalid(`${name}: must be a time of RFC 3339`)
  return ms
}

function invalid(message: string): CodedRefusalError {
  return new CodedRefusalError(400, 'invalid_request', message)
}
