import { followFile, missingFile } from '@plat/config'
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
  /** Returns `<provider>/<model>` of a call with the region of its provider, or null for other calls. */
  readonly endpointOf: (call: Call<'target'>) => { readonly key: string; readonly region: string | null } | null
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
}

/** `energy` in the outcome record of a model call. Members are in canonical order. */
export type EnergyEstimate = {
  /** Millionths of a Wh. */
  readonly microWh: Range
  /** Micrograms of CO2e; undefined if the region is unknown. */
  readonly microgCO2e: Range | undefined
  /** Region of the grid; undefined if unknown. */
  readonly region: string | undefined
  /** `id` of the table. */
  readonly table: string
}

/** Estimates a finished call. Returns undefined if its model is not in the table. */
export type Estimate = (call: Call<'target'>, outcome: Outcome) => EnergyEstimate | undefined

export interface EnergyFeature {
  readonly estimate: Estimate | undefined
  /** Reads the table; called first before the gateway serves. */
  check(): Promise<void>
  close(): void
}

/** Energy and carbon (docs/spec/gateway.md, `energy`), estimated if a file is set. The file is read again every `policyReloadSeconds`. */
export function createEnergy(options: EnergyOptions): EnergyFeature {
  const { config, endpointOf } = options
  const { file, defaultRegion } = config.energy
  if (file === '') return { estimate: undefined, check: async () => {}, close: () => {} }
  const watch = watchTable(options)
  return {
    estimate(call, outcome) {
      const by = endpointOf(call)
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

/** Snapshot slot of the factors: a call is estimated with those in force when it arrived. */
const energySlot: Slot<typeof noFactors> = { name: 'energy', initial: noFactors }

/** An invalid file leaves the previous table in force. */
function watchTable({ config, snapshots, clock, log }: EnergyOptions) {
  const path = config.energy.file
  const refuse = (problems: readonly string[]) => {
    const inForce = snapshots.current.get(energySlot)
    const meanwhile = inForce === noFactors ? 'nothing is estimated' : 'the factors read before stay in force'
    log.error({ path, problems, table: inForce.id }, `energy.file is refused: ${meanwhile}`)
  }
  return followFile({
    path,
    everySeconds: config.policyReloadSeconds,
    clock,
    decode: (bytes) => (bytes === null ? missingFile : decodeEnergy(bytes)),
    publish({ table }) {
      snapshots.publish(energySlot, table)
      log.info({ path, table: table.id }, 'energy factors loaded')
    },
    refuse,
  })
}
