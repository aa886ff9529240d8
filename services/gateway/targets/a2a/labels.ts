import { whenAllReady, whenReady } from '@plat/core'
import type { Bindings } from '../../call/bindings/bindings.ts'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  type FrameVerdict,
  type Identity,
  isDenial,
  type SessionRef,
} from '../../call/index.ts'
import { type Marking, type Review, type RunningReview, review } from '../../pipeline/stage.ts'
import { namesIn } from './registry.ts'
import type { NamedIn } from './stage.ts'

/** Taint labels of sessions, for calls between agents. */
export interface SessionLabels {
  labelsOf(identity: Identity): readonly string[]
  add(identity: Identity, labels: readonly string[]): null | Denial | Promise<null | Denial>
  /** Labels of a response of `<ns>/<agent>` to these sessions; null if they are unknown. */
  labelsFrom(agent: string, callers: readonly SessionRef[] | null): readonly string[]
  /** Adds the labels of the agent to the caller's session as they change. Returns null when durable. */
  listen(identity: Identity, agent: string): null | Denial | Promise<null | Denial>
  /** Resolves when additions of other replicas are applied; rejects if they cannot be. Null without replicas. */
  readonly catchUp: (() => Promise<void>) | null
}

/** Maximum tasks, contexts and sessions looked up per frame. Beyond, they count as unknown. */
const LOOKED_UP_MAX = 64

export interface CalleeLabelsOptions {
  readonly labels: SessionLabels
  readonly bindings: Pick<Bindings, 'sessionsOf' | 'sends'>
  /** Tasks, contexts and webhooks named in a request, as parsed by its plane. */
  readonly namedIn: (call: Call) => Pick<NamedIn, 'tasks' | 'contexts' | 'pushURLs'>
}

type Marked = Call<'identity' | 'target'>

/**
 * Returns taint labels from called agents. Content read by any session of an agent may be in its responses, so the caller's
 * session gets the labels of the sessions that may have written a frame, durably before the frame is forwarded.
 */
export class CalleeTaints {
  readonly #options: CalleeLabelsOptions

  constructor(options: CalleeLabelsOptions) {
    this.#options = options
  }

  get review(): Review<'identity' | 'target'> {
    return review({
      name: 'mark',
      needs: ['identity', 'target'],
      open: (call) => (call.facts.target.kind === 'a2a' ? new CalleeMark(this, this.#options.labels, call) : null),
    })
  }

  /**
   * Records the sender of a task message and the registration of webhooks before the request is forwarded: its response may never come.
   * Returns null when durable.
   */
  note(call: Marked): null | Denial | Promise<null | Denial> {
    const { labels, bindings, namedIn } = this.#options
    const { identity, target } = call.facts
    const { tasks, contexts, pushURLs } = namedIn(call)
    const notes = pushURLs.length > 0 ? [labels.listen(identity, agentIn(target.server))] : []
    if (call.operation === 'a2a.send') {
      for (const id of tasks) notes.push(bindings.sends(identity, target.server, 'task', id))
      for (const id of contexts) notes.push(bindings.sends(identity, target.server, 'context', id))
    }
    return whenAllReady(notes, (all) => all.find(isDenial) ?? null)
  }

  /** Names of the caller's sessions for which the agent may work in this call; null if they are unknown. */
  sendersOf(call: Marked): readonly string[] | null {
    const { bindings, namedIn } = this.#options
    const { identity, target } = call.facts
    const { tasks, contexts } = namedIn(call)
    if (tasks.length + contexts.length > LOOKED_UP_MAX) return null
    const known = [
      ...tasks.map((id) => bindings.sessionsOf(target.server, 'task', id)),
      ...contexts.map((id) => bindings.sessionsOf(target.server, 'context', id)),
    ]
    const senders = new Set([identity.session])
    for (const sessions of known) {
      if (sessions === null) return null
      for (const session of sessions) senders.add(session)
    }
    return senders.size > LOOKED_UP_MAX ? null : [...senders]
  }

  /** The labels of a response of the called agent at this time. */
  broughtBy(call: Marked): readonly string[] {
    const { namespace, agent } = call.facts.identity
    // A list contains tasks of all sessions.
    const senders = call.method === 'ListTasks' ? null : this.sendersOf(call)
    const callers = senders?.map((session) => ({ namespace, agent, session })) ?? null
    return this.#options.labels.labelsFrom(agentIn(call.facts.target.server), callers)
  }
}

class CalleeMark implements RunningReview, Marking {
  readonly #callees: CalleeTaints
  readonly #labels: SessionLabels
  readonly #call: Marked
  readonly #added = new Set<string>()
  readonly cleared: readonly string[] = []

  constructor(callees: CalleeTaints, labels: SessionLabels, call: Marked) {
    this.#callees = callees
    this.#labels = labels
    this.#call = call
  }

  get marking(): Marking {
    return this
  }

  get added(): readonly string[] {
    return [...this.#added]
  }

  /** Checks each frame: the agent may read more while it responds. */
  frame(frame: Frame): FrameVerdict {
    const { catchUp } = this.#labels
    return catchUp === null ? this.#mark(frame) : this.#markLate(frame, catchUp)
  }

  end(): FrameVerdict {
    return []
  }

  /** Waits for other replicas: the agent's session may have called one of them. */
  async #markLate(frame: Frame, catchUp: () => Promise<void>): Promise<Awaited<FrameVerdict>> {
    try {
      await catchUp()
    } catch {
      return deny('state_unavailable', 'taint labels of other replicas are not available')
    }
    return this.#mark(frame)
  }

  #mark(frame: Frame): FrameVerdict {
    const { identity } = this.#call.facts
    const brought = this.#callees.broughtBy(this.#call)
    if (brought.length === 0) return [frame]
    const before = new Set(this.#labels.labelsOf(identity))
    const passed = (denial: Denial | null) => {
      if (denial !== null) return denial
      for (const label of brought) if (!before.has(label)) this.#added.add(label)
      return [frame]
    }
    return whenReady(this.#labels.add(identity, brought), passed)
  }
}

/** Returns `<ns>/<agent>` of `a2a/<ns>/<agent>`. */
function agentIn(server: string): string {
  return namesIn(server).join('/')
}
