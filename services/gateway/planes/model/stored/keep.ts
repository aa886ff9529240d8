import { isObject, member, whenReady } from '@plat/core'
import {
  type Call,
  type Denial,
  type Frame,
  type FrameVerdict,
  type Identity,
  idsOfResponse,
  storedContent,
} from '../../../call/index.ts'
import { type Review, type RunningReview, review } from '../../../pipeline/stage.ts'
import { answeredBy, isCached } from '../note.ts'
import { ModelBody } from '../request.ts'
import type { ModelEndpoint } from '../upstream/endpoint.ts'

/** A call whose response names content that its provider stores. */
interface Storing {
  readonly identity: Identity
  readonly account: string
  readonly call: string
  readonly labels: readonly string[]
}

/** Stores the owners of what a response says that its provider stores. */
export interface KeepOptions {
  /** Returns the first endpoint of the route of a call; null: the route no longer exists. */
  endpointOf(call: Call<'target'>): ModelEndpoint | null
  /** Returns the current taint labels of a caller. */
  labelsOf(identity: Identity): readonly string[]
  /** Resolves once the owner is durable, or could not be stored. */
  keepResponse(storing: Storing, ids: readonly string[]): Promise<void>
  /** Resolves to null once the owner of a file is durable. */
  keepFile(storing: Storing, id: string): null | Denial | Promise<Denial | null>
  /** Removes the owner of a file that was deleted. */
  release(account: string, id: string): Promise<Denial | null>
}

type StoringCall = Call<'identity' | 'target'>

/**
 * Binds responses, items, containers and files that a provider stores to the caller whose call created them, durably before the frame that
 * completes the response is sent.
 */
export function createKeepReview(options: KeepOptions): Review<'identity' | 'target'> {
  return review({
    name: 'bind',
    needs: ['identity', 'target'],
    open(call: StoringCall) {
      const { body, method, facts } = call
      const [account] = facts.target.accounts ?? []
      if (call.operation === 'model.file' && account !== undefined) return new FileKeeper(options, call, account)
      if (facts.target.kind !== 'model' || !(body instanceof ModelBody) || isCached(call.wire)) return null
      const idsIn = IDS[method]
      const endpoint = idsIn === undefined ? null : (answeredBy(call) ?? options.endpointOf(call))
      // A translated response is stored nowhere, and the gateway made its ids.
      if (idsIn === undefined || endpoint === null || !endpoint.wire.native.has(method)) return null
      return new Keeper(options, { call, account: endpoint.account, idsIn: (frame) => idsIn(frame, body) })
    },
  })
}

interface StoringResponse {
  readonly call: StoringCall
  readonly account: string
  readonly idsIn: (frame: Frame) => readonly string[]
}

class Keeper implements RunningReview {
  readonly #options: KeepOptions
  readonly #response: StoringResponse

  constructor(options: KeepOptions, response: StoringResponse) {
    this.#options = options
    this.#response = response
  }

  frame(frame: Frame): FrameVerdict {
    const { call, account, idsIn } = this.#response
    const ids = idsIn(frame)
    if (ids.length === 0) return [frame]
    const { identity, target } = call.facts
    const labels = [...new Set([...this.#options.labelsOf(identity), ...target.labels.taints])]
    return this.#options.keepResponse({ identity, account, call: call.id, labels }, ids).then(() => [frame])
  }

  /** Pieces of text name nothing. */
  skim(): void {}

  end(): FrameVerdict {
    return []
  }
}

/** Binds a file that was uploaded, and releases one that was deleted. */
class FileKeeper implements RunningReview {
  readonly #options: KeepOptions
  readonly #call: StoringCall
  readonly #account: string

  constructor(options: KeepOptions, call: StoringCall, account: string) {
    this.#options = options
    this.#call = call
    this.#account = account
  }

  frame(frame: Frame): FrameVerdict {
    const { id: call, method, name, facts } = this.#call
    if (frame.role !== 'final') return [frame]
    const orFrame = (denial: Denial | null) => denial ?? [frame]
    if (method === 'files/delete' && name !== null) return this.#options.release(this.#account, name).then(orFrame)
    const id = member(frame.value, 'id')
    if (method !== 'files' || typeof id !== 'string') return [frame]
    const { identity } = facts
    const storing = { identity, account: this.#account, call, labels: this.#options.labelsOf(identity) }
    return whenReady(this.#options.keepFile(storing, id), orFrame)
  }

  end(): FrameVerdict {
    return []
  }
}

const NONE: readonly string[] = []

/** The ids in a frame, by endpoint. */
const IDS: Readonly<Record<string, (frame: Frame, body: ModelBody) => readonly string[]>> = {
  responses({ role, value }, { value: request }) {
    if (role !== 'final' || !isObject(value)) return NONE
    const response = isObject(value.response) ? value.response : value
    return idsOfResponse(response, request.store !== false)
  },
  messages({ role, value }) {
    if (role === 'error' || !isObject(value)) return NONE
    const container = member(isObject(value.delta) ? value.delta : value, 'container')
    const id = member(container, 'id')
    const blocks = Array.isArray(value.content) ? value.content : [value.content_block]
    const files = blocks.filter(isResultOfCode).flatMap((block) => storedContent({ block }))
    return [...(typeof id === 'string' && id !== '' ? [id] : NONE), ...files.map((file) => file.id)]
  },
}

/** Files that code at the provider wrote are in the results of its tools. */
function isResultOfCode(block: unknown): boolean {
  const type = member(block, 'type')
  return typeof type === 'string' && type.endsWith('code_execution_tool_result')
}
