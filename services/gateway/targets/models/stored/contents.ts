import { type Clock, type PoolObservers, reasonOf, watchedPool } from '@plat/core'
import type { Log } from '@plat/process'
import type { Journals, OpenJournal } from '@plat/state'
import { Bindings } from '../../../call/bindings/bindings.ts'
import { type BindingEvent, bindingJournal } from '../../../call/bindings/events.ts'
import { type Denial, type Identity, isDenial } from '../../../call/index.ts'

const DAY_MS = 24 * 3600 * 1000

export interface StoredContentsOptions {
  readonly config: { readonly auditPath: string }
  readonly journals: Journals
  readonly pools?: PoolObservers<'stored_responses' | 'stored_files'>
  readonly clock: Clock
  readonly log: Log
}

/** A call whose response names content that its provider stores. */
export interface Storing {
  readonly identity: Identity
  readonly account: string
  readonly call: string
  /** Taint labels of the content. */
  readonly labels: readonly string[]
}

/**
 * Owners of what model providers store for the accounts of routes: responses with their items and containers, and files and batches. The owner
 * is an agent for one user, as of tasks of agents, because files outlive the sessions that upload them. Durable, and known on every replica.
 */
export class StoredContents {
  readonly #responses: Bindings
  readonly #files: Bindings
  readonly #journals: readonly OpenJournal<BindingEvent>[]

  private constructor(
    { responses, files }: { readonly responses: Bindings; readonly files: Bindings },
    journals: readonly OpenJournal<BindingEvent>[],
  ) {
    this.#responses = responses
    this.#files = files
    this.#journals = journals
  }

  /** Rejects if a journal cannot be read. */
  static async open({ config, journals, pools, clock, log }: StoredContentsOptions): Promise<StoredContents> {
    const open = (name: 'responses' | 'files') => journals.open(bindingJournal(config, name))
    const onFault = (error: unknown) =>
      log.error({ error: reasonOf(error) }, 'owners of content at model providers could not be stored')
    const ofResponses = await open('responses')
    const ofFiles = await open('files')
    const responses = await Bindings.open({
      ...{ journal: ofResponses, clock, onFault, noun: 'stored responses', forgetsOldest: true },
      pool: watchedPool({ name: 'stored_responses', observer: pools?.of('stored_responses') }),
      keptMs: () => DAY_MS,
    })
    const files = await Bindings.open({
      ...{ journal: ofFiles, clock, onFault, noun: 'files at model providers' },
      pool: watchedPool({ name: 'stored_files', observer: pools?.of('stored_files') }),
    })
    return new StoredContents({ responses, files }, [ofResponses, ofFiles])
  }

  /** Returns whether the caller owns what this id names in an account. */
  owns(identity: Identity, account: string, id: string): boolean {
    const callee = calleeOf(account)
    return this.#files.owns(identity, callee, 'content', id) || this.#responses.owns(identity, callee, 'content', id)
  }

  /** Returns whether the caller owns a batch in an account. */
  ownsBatch(identity: Identity, account: string, id: string): boolean {
    return this.#files.owns(identity, calleeOf(batchesOf(account)), 'content', id)
  }

  /** Returns the taint labels of the results of a batch. */
  labelsOfBatch(account: string, id: string): readonly string[] {
    return this.#files.labelsOf(calleeOf(batchesOf(account)), 'content', id)
  }

  /** Returns the ids of batches of the caller in an account, the oldest first. */
  batchesOf(identity: Identity, account: string): readonly string[] {
    return this.#files.idsOf(identity, calleeOf(batchesOf(account)), 'content')
  }

  /** Returns whether the caller owns a file with the results of a batch in an account. Requests cannot name it. */
  ownsResults(identity: Identity, account: string, id: string): boolean {
    return this.#files.owns(identity, calleeOf(resultsOf(account)), 'content', id)
  }

  /** Returns the taint labels of what this id names in an account. */
  labelsOf(account: string, id: string): readonly string[] {
    const callee = calleeOf(account)
    const labels = [this.#files, this.#responses].flatMap((one) => one.labelsOf(callee, 'content', id))
    return [...new Set([...labels, ...this.#files.labelsOf(calleeOf(resultsOf(account)), 'content', id)])]
  }

  /**
   * Stores the owner of ids that a response has. Resolves once that is durable, or could not be done: the response was paid for, and an id
   * without an owner can only not be used. An id that a provider gave to several callers belongs to none of them.
   */
  async keepResponse({ identity, account, call, labels }: Storing, ids: readonly string[]): Promise<void> {
    const server = calleeOf(account)
    const bringing = { identity, server, call, labels, sessions: null }
    const bound = ids.map(async (id) => {
      const denial = await this.#responses.bind(bringing, 'content', id)
      if (isDenial(denial) && denial.code === 'upstream_error') await this.#responses.release(server, 'content', id)
    })
    await Promise.all(bound)
  }

  /** Stores the owner of a file. Resolves to null once that is durable. */
  keepFile({ identity, account, call, labels }: Storing, id: string): null | Denial | Promise<Denial | null> {
    return this.#files.bind({ identity, server: calleeOf(account), call, labels, sessions: null }, 'content', id)
  }

  /** Stores the owner of a batch. Resolves to null once that is durable. */
  keepBatch(storing: Storing, id: string): null | Denial | Promise<Denial | null> {
    return this.keepFile({ ...storing, account: batchesOf(storing.account) }, id)
  }

  /** Stores the owner of a file with the results of a batch. Resolves to null once that is durable. */
  keepResults(storing: Storing, id: string): null | Denial | Promise<Denial | null> {
    return this.keepFile({ ...storing, account: resultsOf(storing.account) }, id)
  }

  /** Removes the owner of a batch that was deleted. */
  releaseBatch(account: string, id: string): Promise<Denial | null> {
    return this.release(batchesOf(account), id)
  }

  /** Returns why the caller could store no file now, or null. */
  refusalFor(identity: Identity): Denial | null {
    return this.#files.refusalFor(identity)
  }

  /** Returns the ids of files of the caller in an account: of its uploads, and of results of batches, each the oldest first. */
  filesOf(identity: Identity, account: string): readonly string[] {
    const ids = (of: string) => this.#files.idsOf(identity, calleeOf(of), 'content')
    return [...ids(account), ...ids(resultsOf(account))]
  }

  /** Removes the owner of a file that was deleted. */
  async release(account: string, id: string): Promise<Denial | null> {
    const denial = await this.#files.release(calleeOf(account), 'content', id)
    return denial ?? (await this.#files.release(calleeOf(resultsOf(account)), 'content', id))
  }

  async close(): Promise<void> {
    this.#responses.close()
    this.#files.close()
    for (const journal of this.#journals) await journal.close()
  }
}

function calleeOf(account: string): string {
  return `model/${account}`
}

/** Batches have separate ids. */
function batchesOf(account: string): string {
  return `${account}#batches`
}

function resultsOf(account: string): string {
  return `${account}#results`
}
