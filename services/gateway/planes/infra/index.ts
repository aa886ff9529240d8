import { checkJson, JsonError, parseChecked } from '@plat/core'
import {
  type Body,
  type Call,
  type Denial,
  deny,
  type Frame,
  isDenial,
  type Parsed,
  type Reply,
  type RequestContext,
} from '../../call/index.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { type BodyLimits, useJsonBytes } from '../wire/message.ts'
import { plainRefusal } from '../wire/refusal.ts'

/** Prefix of all paths of this plane. */
export const INFRA_PREFIX = '/v1/infra/'

/** The tool of each path. */
const TOOLS: Readonly<Record<string, string>> = {
  plans: 'plan',
  authorizations: 'apply',
  'authorizations/verify': 'verify',
}

/** Largest body of a request without a plan, in bytes. */
const MAX_QUESTION_BYTES = 64 * 1024

export interface InfraPlaneOptions extends Omit<BodyLimits, 'maxBodyBytes'> {
  /** docs/spec/gateway.md: `infra.maxPlanBytes`. */
  readonly maxPlanBytes: number
  /** Responds to a call that all stages admitted. */
  readonly answer: (
    call: Call<'identity' | 'target' | 'hold'>,
  ) => Promise<{ readonly status: number; readonly value: object } | Denial>
}

/** The plane of `/v1/infra/…` (docs/spec/gateway.md, `infra`): judges plans of Terraform and OpenTofu in JSON. */
export function createInfraPlane(options: InfraPlaneOptions): Plane {
  return new InfraPlane(options)
}

class InfraPlane implements Plane {
  readonly #options: InfraPlaneOptions

  constructor(options: InfraPlaneOptions) {
    this.#options = options
  }

  read(arrival: RequestContext): Parsed | Denial | Promise<Parsed | Denial> {
    const { path, method } = arrival.wire
    const route = path.slice(INFRA_PREFIX.length)
    const tool = Object.hasOwn(TOOLS, route) ? TOOLS[route] : undefined
    if (tool === undefined) return deny('not_found', `no resource at ${path.slice(0, 128)}`)
    if (method !== 'POST')
      return deny('method_not_allowed', `${method} is not a method of this address`, { data: { allow: 'POST' } })
    const maxBodyBytes = tool === 'verify' ? MAX_QUESTION_BYTES : this.#options.maxPlanBytes
    return useJsonBytes(arrival, { ...this.#options, maxBodyBytes }, (bytes) => parsed(tool, bytes))
  }

  async forward(call: Call<'identity' | 'target' | 'hold'>): Promise<Reply | Denial> {
    const answer = await this.#options.answer(call)
    if (isDenial(answer)) return answer
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
    const frame: Frame = { role: 'final', value: answer.value, raw: null }
    return { kind: 'frames', head: { status: answer.status, headers }, frames: [frame], attempts: [] }
  }

  /** Returns null: the response is one JSON object, which is sent when the call has ended. */
  keepAlive(): null {
    return null
  }

  refuse(arrival: RequestContext, _: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    return plainRefusal(arrival, denial)
  }

  /** Returns no frames: the response is written at once, so it cannot be aborted. */
  abort(): readonly Frame[] {
    return []
  }

  encode({ value }: Frame): Uint8Array {
    return Buffer.from(JSON.stringify(value))
  }
}

function parsed(tool: string, bytes: Uint8Array): Parsed | Denial {
  try {
    checkJson(bytes)
  } catch (error) {
    if (error instanceof JsonError) return deny('invalid_request', `the body is not strict JSON: ${error.message}`)
    throw error
  }
  return {
    operation: 'infra',
    method: tool,
    server: 'plat-infra',
    name: tool,
    body: new WholeBody(bytes),
    parent: null,
  }
}

/** A body that is judged and hashed as a whole. */
class WholeBody implements Body {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  get args(): Uint8Array {
    return this.bytes
  }

  /** Parsed on each use, so that only the bytes are in memory while an approval is pending. */
  get value(): unknown {
    return parseChecked(Buffer.from(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength).toString('utf8'))
  }
}
