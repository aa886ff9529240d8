import { type Clock, member, type PoolObservers, reasonOf, watchedPool } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals, OpenJournal } from '@plat/state'
import { Bindings, type OwnedTask } from '../../../call/bindings/bindings.ts'
import { type BindingEvent, type BoundTask, bindingJournal } from '../../../call/bindings/events.ts'
import type { LookUps } from '../../../call/bindings/look-ups.ts'
import type { Call, Denial, Identity, Message } from '../../../call/index.ts'
import type { McpRequest } from '../message.ts'
import { bindingOf, type Sealed, type Sealer } from '../seal/seal.ts'
import { hasEnded, isTask, keptMsOf, stateOf, statusIn } from './status.ts'

/** Milliseconds between searches for tasks of revoked owners, which repeat cancellations that failed. */
const SEARCH_EVERY_MS = 60_000
/** Tasks that are cancelled at the same time. */
const CANCELLED_AT_ONCE = 8

/** Revocations of owners, which need not be calling. */
export interface RevokedOwners {
  hasRevoked(who: Identity): boolean
  followCuts(notify: () => void): void
}

/** A task to cancel. */
export interface CancelledTask extends Pick<BoundTask, 'server' | 'target' | 'revision'> {
  readonly id: string
  /** The server's session in which it was created; null: none. */
  readonly session: Sealed | null
}

/** Requests a task's cancellation from its server. Resolves to false if the server could not be reached. Never rejects. */
export type CancelTask = (task: CancelledTask, owner: Identity) => Promise<boolean>

export interface TasksOptions {
  readonly config: { readonly auditPath: string }
  readonly journals: Journals
  readonly ledgers: Ledgers
  readonly sealer: Sealer
  readonly pools?: PoolObservers<'mcp_tasks'>
  /** Default: no other replica creates tasks. */
  readonly lookUps?: Pick<LookUps, 'catchUpFor'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Tasks of MCP servers, each owned by the session that created it. Owners and statuses are durable, and known on every replica. Tasks of
 * revoked owners are cancelled at their servers.
 */
export class McpTasks {
  readonly #bindings: Bindings
  readonly #journal: OpenJournal<BindingEvent>
  readonly #options: TasksOptions
  #stopSearch: () => void = () => {}
  /** The search that is running; a further one follows it. */
  #searching: Promise<void> | null = null
  #repeat = false

  private constructor(options: TasksOptions, journal: OpenJournal<BindingEvent>, bindings: Bindings) {
    this.#options = options
    this.#journal = journal
    this.#bindings = bindings
  }

  /** Rejects if the journal cannot be read. */
  static async open(options: TasksOptions): Promise<McpTasks> {
    const { config, journals, clock, log, pools } = options
    const journal = await journals.open(bindingJournal(config, 'tasks'))
    const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'owners of tasks could not be stored')
    const pool = watchedPool({ name: 'mcp_tasks', observer: pools?.of('mcp_tasks') })
    const bindings = await Bindings.open({ journal, clock, pool, onFault, keptMs: keptMsOf })
    return new McpTasks(options, journal, bindings)
  }

  /** Returns the caller's task at the server with this `target.key`; null: it has none with this id. */
  find(identity: Identity, target: string, id: string): OwnedTask | null {
    return this.#bindings.taskOf(identity, calleeOf(target), id)
  }

  /** Resolves when tasks that other replicas stored before are known here; null: an unknown task stays unknown. */
  catchUp(identity: Identity): Promise<void> | null {
    return this.#options.lookUps?.catchUpFor(identity) ?? null
  }

  /** Binds a task that a call created. Resolves to null when its owner is durable; returns null at once if it was before. */
  bind(
    { id: call, server, facts }: Call<'identity' | 'target'>,
    { revision, session, name, lastEvent }: McpRequest,
    { id, state }: { readonly id: string; readonly state: string },
  ): null | Denial | Promise<Denial | null> {
    const { identity, target } = facts
    const { jti, ancestors, delegators, forkedFrom } = identity
    const sealed =
      session === null ? null : this.#options.sealer.seal(bindingOf('mcp-session', identity, server), session)
    const task: BoundTask = {
      server,
      target: target.key,
      tool: target.tool ?? lastEvent?.origin?.tool ?? name ?? '',
      status: state,
      revision,
      ...(sealed !== null && { session: sealed }),
      tokens: [jti, ...ancestors],
      derivedFrom: [...delegators, ...forkedFrom].map(({ namespace, agent, session }) => ({
        namespace,
        agent,
        session,
      })),
    }
    return this.#bindings.bind({ identity, server: calleeOf(target.key), call, task }, 'task', id)
  }

  /** Returns whether a task has another state than before, and stores it. */
  changes({ id, task }: OwnedTask, state: string): boolean {
    if (task.status === state) return false
    void this.#bindings.changed(calleeOf(task.target), id, state)
    return true
  }

  /** Returns what to record of a notification about a task of the caller, null if nothing, or that the task is another session's. */
  notified({ identity, target }: Call<'identity' | 'target'>['facts'], message: unknown): Message | 'foreign' | null {
    const method = member(message, 'method')
    if (method !== 'notifications/tasks' && method !== 'notifications/tasks/status') return null
    const task = member(message, 'params')
    const owned = isTask(task) ? this.find(identity, target.key, task.taskId) : null
    if (owned === null || !isTask(task)) return 'foreign'
    const state = stateOf(task)
    return this.changes(owned, state) ? statusMessage(method, owned.id, state) : null
  }

  /** Cancels tasks of revoked owners at their servers, now and after each revocation. */
  follow(revoked: RevokedOwners, cancel: CancelTask): void {
    const search = () => {
      if (this.#searching !== null) this.#repeat = true
      else
        this.#searching = this.#cancelRevoked(revoked, cancel).finally(() => {
          this.#searching = null
          if (!this.#repeat) return
          this.#repeat = false
          search()
        })
    }
    revoked.followCuts(search)
    this.#stopSearch = this.#options.clock.every(SEARCH_EVERY_MS, search)
    search()
  }

  async close(): Promise<void> {
    this.#stopSearch()
    this.#bindings.close()
    await this.#journal.close()
  }

  async #cancelRevoked(revoked: RevokedOwners, cancel: CancelTask): Promise<void> {
    const ended = this.#bindings.tasksWhere((one) => !hasEnded(one.task.status) && revoked.hasRevoked(ownerOf(one)))
    for (let at = 0; at < ended.length; at += CANCELLED_AT_ONCE)
      await Promise.all(ended.slice(at, at + CANCELLED_AT_ONCE).map((one) => this.#cancelOne(one, cancel)))
  }

  /** Returns the server's session in which a task was created; null: none. */
  sessionOf({ task }: OwnedTask, owner: Identity): Sealed | null {
    return task.session === undefined
      ? null
      : this.#options.sealer.open(bindingOf('mcp-session', owner, task.server), task.session)
  }

  /** The replica that stores the new status records it. */
  async #cancelOne(owned: OwnedTask, cancel: CancelTask): Promise<void> {
    const { owner, task, id, call } = owned
    const { ledgers, log } = this.#options
    const who = ownerOf(owned)
    if (!(await cancel({ ...task, id, session: this.sessionOf(owned, who) }, who))) {
      log.warn({ server: task.server, task: id }, 'a task of a revoked caller could not be cancelled, will retry')
      return
    }
    if (!(await this.#bindings.changed(calleeOf(task.target), id, 'cancelled'))) return
    const record = {
      kind: 'message',
      call,
      session: owner.session,
      namespace: owner.namespace,
      agent: owner.agent,
      user: owner.user ?? undefined,
      jti: task.tokens[0],
      op: 'mcp.task',
      server: task.server,
      tool: task.tool,
      method: 'tasks/cancel',
      reason: 'its owner is revoked',
      task: { id, status: 'cancelled' },
    } as const
    await ledgers
      .of(owner.tenant)
      .append(record)
      .catch((error) => log.error({ error: reasonOf(error) }, 'the end of a task could not be recorded'))
  }
}

/** Returns the owner as far as revocations and credentials of servers need it. */
export function ownerOf({ owner, task }: Omit<OwnedTask, 'id'>): Identity {
  const [jti = '', ...ancestors] = task.tokens
  const { tenant, namespace, agent, session = '', user, issuer = '' } = owner
  return {
    ...{ tenant, namespace, agent, session, user, issuer, jti, ancestors, delegators: task.derivedFrom },
    ...{ trustDomain: '', groups: [], verified: null, tier: '', scopes: new Set(), forkedFrom: [], chain: [] },
    ...{ expiresAt: 0, jkt: null, forkRoot: null, inheritedTaints: [] },
  }
}

/** Returns the message that records the state of a task. */
export function statusMessage(method: string, id: string, state: string): Message {
  return { method, args: null, task: { id, status: statusIn(state) } }
}

/** The callee of a binding: the key of a server, without slashes. */
function calleeOf(target: string): string {
  return `mcp/${encodeURIComponent(target)}`
}
