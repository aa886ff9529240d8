import { hash } from 'node:crypto'
import { canonicalJson, rfc3339 } from '@plat/core'
import { type Static, Type } from 'typebox'
import { AdminError, bodyAs } from '../../admin/index.ts'

/** Maximum span of a report, in milliseconds: an hour of two TiB of memory is still a safe integer. */
export const LONGEST_MS = 3_600_000
/** Maximum age of a report, in milliseconds: as long as earlier reports are remembered. */
export const OLDEST_MS = 7 * 86_400_000
/** Allowed lead of the reporter's clock, in milliseconds. */
const SKEW_MS = 5_000

const NAME = '[^/\\s]{1,253}'
const whole = () => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const time = () =>
  Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$' })

const reportSchema = Type.Object(
  {
    id: Type.String({ pattern: '^[A-Za-z0-9._:-]{1,128}$' }),
    session: Type.String({ pattern: `^${NAME}/${NAME}/${NAME}$` }),
    from: time(),
    to: time(),
    cpuMs: whole(),
    memoryByteSeconds: whole(),
    gpuMs: Type.Optional(whole()),
  },
  { additionalProperties: false },
)

/** Resources that a sandbox used in a span of time. */
export interface Used {
  /** Milliseconds of one CPU. */
  readonly cpuMs: number
  readonly memoryByteSeconds: number
  /** Milliseconds of one GPU. */
  readonly gpuMs: number
}

/** A parsed report (`POST /v1/usage/sandbox`). */
export interface Report extends Used {
  /** Id of the reporter: a repeated one is the same report. */
  readonly id: string
  /** `<namespace>/<agent>/<session>` */
  readonly session: string
  /** Milliseconds since the epoch. */
  readonly from: number
  readonly to: number
}

/** Throws `invalid_request` naming the first invalid field. `now`: milliseconds since the epoch. */
export function readReport(body: unknown, now: number): Report {
  const { gpuMs = 0, ...written }: Static<typeof reportSchema> = bodyAs(reportSchema, body)
  const report = { ...written, gpuMs, from: timeOf('from', written.from), to: timeOf('to', written.to) }
  const { from, to } = report
  if (to <= from) throw wrong('to: must be after from')
  if (to - from > LONGEST_MS) throw wrong('to: a report is about an hour at most: send several')
  if (to > now + SKEW_MS) throw wrong(`to: lies in the future: it is ${rfc3339(now)} here`)
  if (from < now - OLDEST_MS) throw wrong('from: more than seven days ago: earlier reports are no longer remembered')
  return report
}

/** Equal for reports with equal content. */
export function digestOf({ id, session, from, to, cpuMs, memoryByteSeconds, gpuMs }: Report): string {
  return hash('sha256', canonicalJson({ id, session, from, to, cpuMs, memoryByteSeconds, gpuMs }), 'hex')
}

function timeOf(field: 'from' | 'to', text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw wrong(`${field}: is not a time`)
  return time
}

function wrong(message: string): AdminError {
  return new AdminError('invalid_request', message)
}
