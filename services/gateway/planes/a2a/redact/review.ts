import { isObject, type JsonObject, losslessSteps, member, type Steps } from '@plat/core'
import {
  type Denial,
  deny,
  type Ending,
  type Frame,
  type FrameVerdict,
  isDenial,
  type Redactor,
  type TextRedactor,
} from '../../../call/index.ts'
import type { Review, RunningReview } from '../../../pipeline/stage.ts'
import { createRedactReview, inSteps, type RedactorOf } from '../../wire/redact.ts'
import { A2aFrame } from '../frame.ts'
import { joinedParts, redactedParts } from './parts.ts'
import { RESPONSE } from './texts.ts'

/** Maximum number of artifacts of one response that are streamed at the same time. */
const MAX_OPEN_ARTIFACTS = 64

/** States after which nothing follows (A2A 1.0, section 4.1.3). */
const TERMINAL: ReadonlySet<unknown> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
])

/** Redacts responses of agents, including texts that are streamed in pieces. */
export function createAgentRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview('a2a', redactorOf, (redactor) =>
    isDenial(redactor) ? refusing(redactor) : new ResponseReview(redactor),
  )
}

function refusing(denial: Denial): RunningReview {
  return { frame: () => denial, end: () => [] }
}

/** An artifact that may get more text. */
interface Open {
  readonly pieces: TextRedactor
  /** Its last update, used to send the text held back. */
  readonly update: JsonObject
  /** The frame of that update. */
  readonly form: A2aFrame
}

class ResponseReview implements RunningReview {
  readonly #redactor: Redactor
  readonly #open = new Map<string, Open>()
  /** JSON-RPC id of the request, as the agent repeats it. */
  #id: unknown = null

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  frame(frame: Frame): FrameVerdict {
    if (!(frame instanceof A2aFrame)) return deny('internal', 'a response has a form that cannot be redacted')
    if (frame.json === null) return [frame]
    return inSteps(this.#redacted(frame, frame.json), frame.json.length)
  }

  *#redacted(frame: A2aFrame, bytes: Uint8Array): Steps<readonly Frame[] | Denial> {
    const response = yield* losslessSteps(bytes)
    const joined = isObject(response) ? yield* this.#joined(response, frame) : response
    if (isDenial(joined)) return joined
    const json = joined === response ? bytes : Buffer.from(JSON.stringify(joined))
    const redacted = yield* this.#redactor.steps(json, RESPONSE)
    if (isDenial(redacted)) return redacted
    const passed = redacted === bytes ? frame : frame.withJson(redacted)
    const state = member(member(member(member(response, 'result'), 'statusUpdate'), 'status'), 'state')
    const rest = TERMINAL.has(state) ? this.#rest() : []
    return isDenial(rest) ? rest : [...rest, passed]
  }

  end(how: Ending): FrameVerdict {
    return how === 'complete' ? this.#rest() : []
  }

  *#joined(response: JsonObject, form: A2aFrame): Steps<unknown> {
    this.#id = response.id
    const update = member(response.result, 'artifactUpdate')
    const artifact = member(update, 'artifact')
    const parts = member(artifact, 'parts')
    const isChunk = isObject(update) && (update.append === true || update.lastChunk !== true)
    if (!isChunk || !isObject(artifact) || !Array.isArray(parts))
      return yield* joinedParts(response, () => this.#redactor.pieces(false))
    const redacted = yield* this.#chunk({ update, form }, String(artifact.artifactId), parts)
    return isDenial(redacted)
      ? redacted
      : { ...response, result: { artifactUpdate: { ...update, artifact: { ...artifact, parts: redacted } } } }
  }

  /** Redacts an update of an artifact. Without `append` the artifact is replaced, so text held back before is discarded. */
  *#chunk(
    { update, form }: Pick<Open, 'update' | 'form'>,
    artifact: string,
    parts: readonly unknown[],
  ): Steps<readonly unknown[] | Denial> {
    const known = update.append === true ? this.#open.get(artifact) : undefined
    const pieces = known?.pieces ?? this.#redactor.pieces(false)
    const ends = update.lastChunk === true
    if (ends) this.#open.delete(artifact)
    else this.#open.set(artifact, { pieces, update, form })
    if (this.#open.size > MAX_OPEN_ARTIFACTS)
      return deny('upstream_error', 'too many artifacts are streamed at the same time')
    return yield* redactedParts(parts, pieces, ends)
  }

  /** Returns the text held back of all artifacts, as one last update of each. */
  #rest(): readonly A2aFrame[] | Denial {
    const frames: A2aFrame[] = []
    for (const { pieces, update, form } of this.#open.values()) {
      const text = pieces.end()
      if (isDenial(text)) return text
      if (text !== '') frames.push(this.#lastPiece(update, form, text))
    }
    this.#open.clear()
    return frames
  }

  #lastPiece({ taskId, contextId, artifact }: JsonObject, form: A2aFrame, text: string): A2aFrame {
    const last = { artifactId: member(artifact, 'artifactId'), parts: [{ text }] }
    const artifactUpdate = { taskId, contextId, artifact: last, append: true, lastChunk: true }
    const response = { jsonrpc: '2.0', id: this.#id, result: { artifactUpdate } }
    const json = Buffer.from(JSON.stringify(response))
    return form.event(json)
  }
}
