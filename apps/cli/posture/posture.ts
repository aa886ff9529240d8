import { formatProblem } from '@plat/config'
import { checkGatewayConfig, readConfigFile, typedConfig } from '@plat/gateway/config'
import { type Check, findings, idleAccepts } from '@plat/gateway/posture'
import { findHome } from '../shared/home.ts'
import { CommandError, type Format, type Output, printList } from '../shared/output.ts'

export interface PostureOptions {
  /** A gateway.json; undefined: that of the running plat. */
  readonly path?: string | undefined
  readonly dir?: string | undefined
  readonly output: Format
}

/** Exit code of a configuration that is invalid or has risks that nobody accepted. */
const RISKY = 3

/** `plat posture`: the checks that a gateway tells at start, for a file. @returns 0 no risk, 3 some, or the file is invalid */
export async function posture({ path, dir, output: format }: PostureOptions, output: Output): Promise<number> {
  const file = path ?? (await findHome(dir)).home.gatewayConfig
  const read = readConfigFile(file)
  if (read.kind === 'problem') throw new CommandError(formatProblem(read.problem), RISKY)
  const { config, problems } = checkGatewayConfig(read.text)
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw new CommandError(errors.map(formatProblem).join('\n'), RISKY)
  const typed = typedConfig(config)
  for (const id of idleAccepts(typed)) output.err(`posture.accept: ${id} is no risk of this file any more`)
  const found = findings(typed)
  if (found.length === 0 && format === 'table') output.out(`no risks: ${file}`)
  else {
    const rows = found.map(({ id, risk, fix }) => ({ id, risk, fix }))
    printList(output, format, rows, columns)
  }
  return found.length === 0 ? 0 : RISKY
}

type Row = Pick<Check, 'id' | 'risk' | 'fix'>

const columns = {
  check: ({ id }: Row) => id,
  risk: ({ risk }: Row) => risk,
  fix: ({ fix }: Row) => fix,
}
