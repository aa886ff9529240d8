import { formatProblem, type Problem } from '@plat/config'
import { checkGatewayConfig, readConfigFile } from '@plat/gateway/config'
import { EXIT } from '../shared/exit-codes.ts'

export interface ValidateOptions {
  /** The gateway.json to check. */
  readonly path: string
  /** Unknown keys and missing files are errors, as they are for the gateway. */
  readonly strict: boolean
  /** Takes one line. */
  write(line: string): void
}

/**
 * `plat config validate`: the gateway's own rules without a gateway. Unknown keys and missing files are warnings, because the
 * file may be written for another version or another machine.
 * @returns 0 valid, 3 on errors
 */
export async function validateConfigFile({ path, strict, write }: ValidateOptions): Promise<number> {
  const read = readConfigFile(path)
  const problems = read.kind === 'problem' ? [read.problem] : judgeConfig(read.text, strict)
  for (const problem of problems) write(formatProblem(problem))
  if (problems.some((problem) => problem.severity === 'error')) return EXIT.found
  write(`config OK: ${path}`)
  return 0
}

/** The problems of a text with their severity. `exists` tests whether a named file exists; by default on the disk. */
export function judgeConfig(text: string, strict: boolean, exists?: (path: string) => boolean): readonly Problem[] {
  const options = { readMisspelt: strict, ...(exists !== undefined && { exists }) }
  const { problems } = checkGatewayConfig(text, options)
  return problems.map((problem) => ({ ...problem, severity: weigh(problem, strict) }))
}

function weigh(problem: Problem, strict: boolean): Problem['severity'] {
  if (strict) return 'error'
  return problem.kind === 'unknown_key' || problem.kind === 'missing_file' ? 'warning' : problem.severity
}
