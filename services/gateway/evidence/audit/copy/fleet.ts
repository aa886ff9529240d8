import { CopyDamagedError, copyFiles, copyPath, type PagedLedger } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type LedgerCopies, type LedgerCopy, StateUnreachableError } from '@plat/state'
import { AdminError } from '../../../admin/index.ts'
import type { AuditLedger } from '../audit-ledger.ts'
import { sourceOf } from './agree.ts'
import { nameOf } from './owner.ts'

/** A ledger of the fleet. */
export interface FleetLedger {
  readonly ledgerId: string
  /** Host name of its gateway. */
  readonly replica: string
  /** It is open here, and read from its files. */
  readonly isHere: boolean
  /** Last record: durable here, or copied. */
  readonly seq: number
  readonly hash: string
  /** When records were copied last, in milliseconds; null: there is no copy. */
  readonly copiedAt: number | null
}

export interface FleetOptions {
  readonly copies: LedgerCopies | null
  /** Returns the ledger of a tenant that is open here, or null. */
  readonly of: (tenant: string) => Pick<AuditLedger, 'tenant' | 'path' | 'ledger' | 'ledgerId'> | null
  readonly log: Log
}

/** The ledgers of all replicas: those that are open here, and the copies of the others. */
export class Fleet {
  readonly #options: FleetOptions

  constructor(options: FleetOptions) {
    this.#options = options
  }

  /** Ledgers of a tenant, the one that is open here first. Rejects with StateUnreachableError. */
  async list(tenant: string): Promise<readonly FleetLedger[]> {
    const { copies, of } = this.#options
    const all = (await copies?.list())?.filter((copy) => copy.tenant === tenant) ?? []
    const own = of(tenant)
    const others = all
      .filter(({ ledgerId }) => ledgerId !== own?.ledgerId)
      .map((copy) => ({ ...viewOf(copy), isHere: false }))
    if (own === null) return others
    const { seq, hash } = own.ledger.head()
    const { replica } = nameOf(own.path, tenant)
    const copiedAt = all.find(({ ledgerId }) => ledgerId === own.ledgerId)?.at ?? null
    return [{ ledgerId: own.ledgerId, replica, isHere: true, seq, hash, copiedAt }, ...others]
  }

  /**
   * Returns the ledgers that a request means: all for `*`, else the one with this id, or of the replica with this name. Throws `not_found`,
   * `invalid_request` if the name is ambiguous, and `state_unavailable`.
   */
  async ledgers(tenant: string, replica: string): Promise<readonly PagedLedger[]> {
    const { copies, of } = this.#options
    return await this.reading(async () => {
      const own = of(tenant)
      const listed = await this.list(tenant)
      const wanted = listed.filter((one) => replica === '*' || one.ledgerId === replica || one.replica === replica)
      if (wanted.length === 0) throw new AdminError('not_found', 'replica: there is no ledger of this replica')
      if (replica !== '*' && wanted.length > 1)
        throw new AdminError('invalid_request', 'replica: several ledgers have this name: give the ledgerId')
      const known = new Map((await copies?.list())?.map((copy) => [copy.ledgerId, copy]))
      return await Promise.all(
        wanted.map(async ({ ledgerId, isHere }) => {
          const copy = known.get(ledgerId)
          if (isHere || copy === undefined || copies === null) return { id: ledgerId, path: own?.path ?? '' }
          return { id: ledgerId, path: copyPath(ledgerId), files: await copyFiles(sourceOf(copies, copy)) }
        }),
      )
    })
  }

  /** Runs a read of copies; a copy that was changed or cannot be read is an error of the API. */
  async reading<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof CopyDamagedError) {
        this.#options.log.error({ reason: error.message }, 'a copy of a ledger in the state database was changed')
        throw new AdminError(
          'state_unavailable',
          `a copy in the state database is not what was written: ${error.message}`,
        )
      }
      if (error instanceof StateUnreachableError)
        throw new AdminError(
          'state_unavailable',
          'the ledgers of other replicas cannot be read now: the state database is away',
        )
      throw error
    }
  }
}

function viewOf({ ledgerId, replica, seq, hash, at }: LedgerCopy) {
  return { ledgerId, replica, seq, hash, copiedAt: at }
}
