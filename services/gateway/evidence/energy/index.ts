import { watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { Call, Outcome, Slot, Snapshots } from '../../call/index.ts'
import { decodeEnergy } from './decode.ts'
import { carbonOf, energyOf, type Range } from './estimate.ts'
import { noFactors } from './table.ts'

export interface EnergyOptions {
  readonly config: {
    readonly energy: { readonly file: string; readonly defaultRegion: string }
    readonly policyReloadSeconds: number
  }
  /** `<provider>/<model>` that answered a call, and the region of its provider; null: it is no call of a model. */
  readonly answered: (call: Call<'target'>) => { readonly key: string; readonly region: string | null } | null
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
}

/** What stands as `energy` in the outcome of a model call. Members in canonical order. */
export type EnergyEstimate = {
  /** Millionths of a Wh. */
  readonly microWh: Range
  /** Micrograms of CO2e; undefined: nothing is known of the region. */
  readonly microgCO2e: Range | undefined
  /** Whose grid was reckoned with; undefined: none is known. */
  readonly region: string | undefined
  /** `id` of the table. */
  readonly table: string
}

/** Reckons what a call took, once it is over; undefined: its model is not in the table. */
export type Estimate = (call: Call<'target'>, outcome: Outcome) => EnergyEstimate | undefined

/** Estimates of energy and carbon. */
export interface EnergyFeature {
  /** Undefined: nothing is estimated. */
  readonly estimate: Estimate | undefined
  /** Reads the table now; the first check comes before the gateway serves. */
  check(): Promise<void>
  close(): void
}

/** Energy and carbon (docs/spec/gateway.md, `energy`): a file means that they are estimated. It is read again every `policyReloadSeconds`. */
export function createEnergy(options: EnergyOptions): EnergyFeature {
  const { config, answered } = options
  const { file, defaultRegion } = config.energy
  if (file === '') return { estimate: undefined, check: async () => {}, close: () => {} }
  const watch = watchTable(options)
  return {
    estimate(call, outcome) {
      const by = answered(call)
      const table = call.snapshot.get(energySlot)
      const factors = by === null ? null : table.model(by.key)
      if (by === null || factors === null) return undefined
      const microWh = energyOf(factors, outcome)
      if (microWh.max === 0) return undefined
      const region = by.region ?? defaultRegion
      const grid = table.region(region)
      return {
        microWh,
        microgCO2e: grid === null ? undefined : carbonOf(microWh, grid),
        region: grid === null ? undefined : region,
        table: table.id,
      }
    },
    check: () => watch.check(),
    close: () => watch.stop(),
  }
}

/** Where the factors stand in the snapshot: a call is reckoned by those that were there when it came. */
const energySlot: Slot<typeof noFactors> = { name: 'energy', initial: noFactors }

/** A bad file leaves the good one in force. */
function watchTable({ config, snapshots, clock, log }: EnergyOptions) {
  const path = config.energy.file
  const failed = (problems: readonly string[]) => {
    const inForce = snapshots.current.get(energySlot)
    const meanwhile = inForce === noFactors ? 'nothing is estimated' : 'the factors read before stay in force'
    log.error({ path, problems, table: inForce.id }, `energy.file is refused: ${meanwhile}`)
  }
  return watchFile({
    path,
    everyMs: config.policyReloadSeconds * 1000,
    clock,
    onBytes(bytes) {
      const decoded = bytes === null ? { problems: ['no such file'] } : decodeEnergy(bytes)
      if ('problems' in decoded) return failed(decoded.problems)
      snapshots.publish(energySlot, decoded.table)
      log.info({ path, table: decoded.table.id }, 'energy factors loaded')
    },
    onError: (error) => failed([error instanceof Error ? error.message : 'cannot be read']),
  })
}
