import { type Check, findings, idleAccepts } from '@plat/gateway/posture'
import { findFolder } from '../shared/gateway.ts'
import { gatewayConfig } from '../shared/gateway-config.ts'
import { type Format, type Output, printList } from '../shared/output.ts'

export interface PostureOptions {
  /** A gateway.json; undefined: that of the running plat. */
  readonly path?: string | undefined
  readonly dir?: string | undefined
  readonly output: Format
}

/** Exit code of a configuration with risks that are not accepted, or that is invalid. */
const RISKY = 3

/** `plat posture`: the risks that a gateway logs at startup, for a file. @returns 0 for no risk, 3 for some or an invalid file */
export async function posture({ path, dir, output: format }: PostureOptions, output: Output): Promise<number> {
  const file = path ?? (await findFolder(dir)).home.gatewayConfig
  const typed = gatewayConfig(file)
  for (const id of idleAccepts(typed)) output.err(`posture.accept: ${id} is not a risk of this file any more`)
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
