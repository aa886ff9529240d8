import { statSync } from 'node:fs'
import path from 'node:path'
import { formatProblem } from '@plat/config'
import { reasonOf, systemClock } from '@plat/core'
import { checkGatewayConfig, type GatewayConfig, readConfigFile, typedConfig } from '@plat/gateway/config'
import { readStateFiles } from '@plat/gateway/state-files'
import { silentLog } from '@plat/process'
import { LockedError, type MovedKind, moveStateToPostgres, readDsn } from '@plat/state'
import { CommandError, type Format, isForPeople, type Output } from '../shared/output.ts'
import { printList } from '../shared/print.ts'

export interface MoveFlags {
  /** A gateway.json, or the directory of a `plat up`. */
  readonly from: string
  /** File with the DSN of the database. */
  readonly to: string
  /** Default: `stateBackend.schema` of the gateway.json. */
  readonly schema?: string
  readonly dryRun?: true
  readonly output: Format
}

/** Files of `plat up` and of a gateway alone, in a directory. */
const CONFIG_FILES = ['.plat/gateway.json', 'gateway.json']

/** `plat state move`: moves the state of a gateway from its files into Postgres. Changes no file. */
export async function stateMove(flags: MoveFlags, output: Output): Promise<number> {
  const { to, dryRun: isDry = false } = flags
  const config = readConfig(flags.from)
  const schema = flags.schema ?? config.stateBackend.schema
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw new CommandError(`-schema ${schema}: must be lower case letters, digits and _, at most 63`)
  const dsn = await readDsn(to).catch((error: unknown) => {
    throw new CommandError(`-to ${to}: ${reasonOf(error)}`)
  })
  using source = await read(config)
  const { state } = source
  const zone = config.budgetTimezone
  const kinds = await moveStateToPostgres({ dsn, schema, state, zone, isDry }).catch((error: unknown) => {
    throw new CommandError(`-to ${to}: ${reasonOf(error)}`)
  })
  const files = kinds.map(({ kind, entries, keys, outcome }) => ({
    kind,
    entries,
    keys,
    outcome: outcome === 'moved' && isDry ? 'would move' : outcome,
    file: source.files.get(kind) || null,
  }))
  printList(output, flags.output, files, columns)
  if (isForPeople(flags.output)) output.out(isDry ? 'nothing was changed' : NEXT)
  return 0
}

type Line = Readonly<Omit<MovedKind, 'outcome'> & { outcome: string; file: string | null }>

const columns = {
  kind: ({ kind }: Line) => kind,
  entries: ({ entries }: Line) => String(entries),
  keys: ({ keys }: Line) => String(keys),
  outcome: ({ outcome }: Line) => outcome,
  file: ({ file }: Line) => file ?? '(in memory)',
}

const NEXT =
  'Set stateBackend.type to postgres and start the gateways. The files were not changed; the ledger stays where it is.'

function readConfig(from: string): GatewayConfig {
  const isFolder = statSync(from, { throwIfNoEntry: false })?.isDirectory() === true
  const candidates = isFolder ? CONFIG_FILES.map((name) => path.join(from, name)) : [from]
  const file = candidates.find((one) => statSync(one, { throwIfNoEntry: false })?.isFile() === true)
  if (file === undefined) throw new CommandError(`-from ${from}: there is no gateway.json`)
  const read = readConfigFile(file)
  if (read.kind === 'problem') throw new CommandError(formatProblem(read.problem))
  // Files of other kinds, such as keys, are not needed here.
  const { config, problems } = checkGatewayConfig(read.text, { exists: () => true })
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw new CommandError([`${file}:`, ...errors.map(formatProblem)].join('\n'))
  return typedConfig(config)
}

async function read(config: GatewayConfig): ReturnType<typeof readStateFiles> {
  try {
    return await readStateFiles(config, { clock: systemClock, log: silentLog })
  } catch (error) {
    if (error instanceof LockedError) throw new CommandError(`${error.message}; stop the gateway first`)
    throw new CommandError(reasonOf(error))
  }
}
