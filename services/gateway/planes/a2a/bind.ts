import { whenAllReady } from '@plat/core'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  type FrameVerdict,
  type Identity,
  isDenial,
} from '../../call/index.ts'
import type { Review, RunningReview } from '../../pipeline/stage.ts'
import { A2aFrame } from './frame.ts'
import { namedIn, responseIn } from './response.ts'

/** Owners of the tasks and contexts that agents return. */
export interface Owners {
  /** Returns the names of the caller's sessions for which the agent may work in this call; null if not all are known. */
  sendersOf(call: Call<'identity' | 'target'>): readonly string[] | null
  /** Resolves to null when the ownership of the caller is durable. */
  bind(
    bringing: {
      readonly identity: Identity
      readonly server: string
      readonly call: string
      readonly sessions: readonly string[] | null
    },
    kind: 'task' | 'context',
    id: string,
  ): null | Denial | Promise<Denial | null>
}

/** Binds tasks and contexts to the caller whose message created them, durably before the frame that names them is sent. */
export function createBindReview(owners: Owners): Review<'identity' | 'target'> {
  return {
    name: 'bind',
    needs: ['identity', 'target'],
    open: (call) => (call.facts.target.kind === 'a2a' ? new Binder(owners, call) : null),
  }
}

class Binder implements RunningReview {
  readonly #owners: Owners
  readonly #call: Call<'identity' | 'target'>

  constructor(owners: Owners, call: Call<'identity' | 'target'>) {
    this.#owners = owners
    this.#call = call
  }

  frame(frame: Frame): FrameVerdict {
    if (!(frame instanceof A2aFrame)) return deny('internal', 'a response has a form that cannot be bound')
    const response = frame.json === null ? null : responseIn(frame)
    if (response === null) return [frame]
    const { id, facts } = this.#call
    const sessions = this.#owners.sendersOf(this.#call)
    const bringing = { identity: facts.identity, server: facts.target.server, call: id, sessions }
    const { tasks = [], contexts = [] } = namedIn(response) ?? {}
    const binding = [
      ...tasks.map((task) => this.#owners.bind(bringing, 'task', task)),
      ...contexts.map((context) => this.#owners.bind(bringing, 'context', context)),
    ]
    return whenAllReady(binding, (bound) => bound.find(isDenial) ?? [frame])
  }

  end(): FrameVerdict {
    return []
  }
}
