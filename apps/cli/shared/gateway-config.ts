import { formatProblem } from '@plat/config'
import { checkGatewayConfig, type GatewayConfig, readConfigFile, typedConfig } from '@plat/gateway/config'
import { EXIT } from './exit-codes.ts'
import { CommandError } from './output.ts'

/** A valid gateway.json, defaults filled in. @throws CommandError with every problem, a line each, and exit code 3 */
export function gatewayConfig(file: string): GatewayConfig {
  const read = readConfigFile(file)
  if (read.kind === 'problem') throw new CommandError(formatProblem(read.problem), EXIT.found)
  const { config, problems } = checkGatewayConfig(read.text)
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw new CommandError(errors.map(formatProblem).join('\n'), EXIT.found)
  return typedConfig(config)
}
