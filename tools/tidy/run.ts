import os from 'node:os'
import path from 'node:path'
import { formatFinding, tidyTree } from './tidy.ts'

/** Words of this machine: where the repository lies, whose it is, and the registry it installs from. */
export function machineOwn(root: string, env: NodeJS.ProcessEnv): readonly string[] {
  const registry = URL.parse(env.npm_config_registry ?? '')?.host
  const own = [path.resolve(root), os.homedir(), registry]
  return own.filter((word): word is string => word !== undefined && word.length > '/root/'.length)
}

if (import.meta.main) {
  const root = path.resolve(import.meta.dirname, '../..')
  const findings = tidyTree(root, machineOwn(root, process.env))
  for (const finding of findings) console.log(formatFinding(finding))
  console.log(findings.length === 0 ? 'tidy' : `${findings.length} to mend`)
  process.exitCode = findings.length === 0 ? 0 : 1
}
