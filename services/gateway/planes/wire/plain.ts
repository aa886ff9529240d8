import { type Arrival, type Denial, type Frame, type Head, statusOf } from '../../call/index.ts'
import { refusalHeaders } from './refusal.ts'

/** A refusal outside every dialect: `{error, message, requestId}`. */
export function plainRefusal({ id }: Arrival, denial: Denial): { readonly head: Head; readonly frame: Frame } {
  const body = JSON.stringify({ error: denial.code, message: denial.reason, requestId: id })
  return {
    head: { status: statusOf(denial), headers: refusalHeaders(denial) },
    frame: { role: 'error', value: undefined, raw: Buffer.from(body) },
  }
}
