import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { isObject, systemClock, systemIds } from '@plat/core'
import {
  HoldKeeper,
  type HoldTarget,
  type LegalHold,
  openLedger,
  readHoldTarget,
  readLegalHolds,
  textOfTarget,
} from '@plat/ledger'
import { LockedError } from '@plat/state'
import { admin, adminList } from '../shared/admin-api.ts'
import { missingAgent } from '../shared/agent.ts'
import { type FoundGateway, findGateway } from '../shared/gateway.ts'
import { CommandError, type Format, isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printData, printList } from '../shared/print.ts'

/** Which ledger: that of the gateway, by its admin API, or the file of a stopped one. */
export interface HoldSource {
  readonly dir?: string | undefined
  /** Path of a ledger that no gateway writes. */
  readonly ledger?: string | undefined
}

/** A legal hold as the admin API has it. */
interface HoldView {
  readonly id: string
  readonly at: string
  readonly by: string
  readonly reason: string
  readonly target: string
}

const HOW =
  'write session:<ns>/<agent>/<id>, agent:<ns>/<name>, or <from>..<to>: two record numbers, or two times (2026-03-01)'

/** `plat audit hold`: segments with such records stay from now on. */
export async function auditHold(
  options: HoldSource & { readonly target: string; readonly reason?: string | undefined; readonly output: Format },
  output: Output,
): Promise<number> {
  const { target, reason = '' } = options
  const found = readHoldTarget(target)
  if (found === null) throw new CommandError(`${JSON.stringify(target)} cannot be held: ${HOW}`, 2)
  const { made, unknown } =
    options.ledger === undefined
      ? await holdAt(await findGateway(options.dir), { found, target, reason })
      : {
          made: viewOf(await withKeeper(options.ledger, (keeper) => keeper.add(found, localUser(), reason))),
          unknown: null,
        }
  if (!isHold(made)) throw new CommandError('the response of the gateway is not a legal hold')
  if (unknown !== null) output.err(`warning: ${unknown}`)
  if (options.output !== 'table') {
    printData(output, options.output, made)
    return 0
  }
  output.out(`held ${plain(made.target)}: segments of the ledger with such records stay`)
  output.out(`release it with: plat audit release ${plain(made.id)}`)
  return 0
}

/** An agent that does not exist now may have records all the same, so its name is only warned of. */
async function holdAt(
  gateway: FoundGateway,
  { found, target, reason }: { readonly found: HoldTarget; readonly target: string; readonly reason: string },
): Promise<{ readonly made: unknown; readonly unknown: string | null }> {
  const made = await admin(gateway.env, 'POST', '/v1/audit/holds', { target, reason })
  const held = 'agent' in found ? found.agent : 'session' in found ? found.session : null
  const agent = held?.split('/').slice(0, 2).join('/')
  return { made, unknown: agent === undefined ? null : await missingAgent(gateway, agent) }
}

/** `plat audit holds`: the newest first. */
export async function auditHolds(
  options: HoldSource & { readonly output: WideFormat },
  output: Output,
): Promise<number> {
  const holds =
    options.ledger === undefined
      ? await adminList((await findGateway(options.dir)).env, '/v1/audit/holds', isHold)
      : (await readLegalHolds(options.ledger)).toReversed().map(viewOf)
  if (holds.length === 0 && isForPeople(options.output)) {
    output.out('no legal holds')
    return 0
  }
  printList(output, options.output, holds, {
    id: ({ id }) => plain(id),
    target: ({ target }) => plain(target),
    at: ({ at }) => plain(at),
    by: ({ by }) => plain(by),
    reason: ({ reason }) => plain(reason) || '-',
  })
  return 0
}

export async function auditRelease(options: HoldSource & { readonly id: string }, output: Output): Promise<number> {
  const { id, ledger } = options
  if (ledger === undefined) {
    await admin((await findGateway(options.dir)).env, 'DELETE', `/v1/audit/holds/${encodeURIComponent(id)}`)
  } else if (!(await withKeeper(ledger, (keeper) => keeper.release(id, localUser())))) {
    throw new CommandError(`there is no legal hold with this id; see plat audit holds -ledger ${ledger}`)
  }
  output.out(`released ${id}`)
  return 0
}

/** Opens the ledger as its writer: what is held is recorded. */
async function withKeeper<T>(ledgerPath: string, work: (keeper: HoldKeeper) => Promise<T>): Promise<T> {
  if (!existsSync(ledgerPath)) throw new CommandError(`${ledgerPath} does not exist`)
  const ids = systemIds(systemClock)
  const found = await openLedger({
    path: ledgerPath,
    tenant: '',
    replica: 'plat',
    clock: systemClock,
    ids,
    since: 'active',
  }).catch((error: unknown) => {
    if (error instanceof LockedError) throw new CommandError(`${error.message}; leave out -ledger to use its admin API`)
    throw error instanceof Error ? new CommandError(error.message) : error
  })
  try {
    return await work(new HoldKeeper({ ledgerPath, ledger: found, clock: systemClock, ids }))
  } finally {
    await found.close()
  }
}

function localUser(): string {
  return `local:${userInfo().username}`
}

function viewOf({ target, ...hold }: LegalHold): HoldView {
  return { ...hold, target: textOfTarget(target) }
}

function isHold(value: unknown): value is HoldView {
  if (!isObject(value)) return false
  return [value.id, value.at, value.by, value.reason, value.target].every((member) => typeof member === 'string')
}
