import { spawnSync } from 'node:child_process'
import os from 'node:os'
import path from 'node:path'
import { LIMITS } from './limits.ts'
import { formatFinding, tidyTree } from './tidy.ts'

/** Words of this machine: where the repository lies, whose it is, and the registry it installs from. */
export function machineOwn(root: string, env: NodeJS.ProcessEnv): readonly string[] {
  const registry = URL.parse(env.npm_config_registry ?? '')?.host
  const own = [path.resolve(root), os.homedir(), registry]
  return own.filter((word): word is string => word !== undefined && word.length > '/root/'.length)
}

/** Commits before this have longer subjects. */
const SUBJECTS_SINCE = '2026-11-23T00:00:00Z'

/** Subjects of commits that are too long; none where there is no history. */
function longSubjects(root: string): readonly string[] {
  const { stdout } = spawnSync('git', ['log', `--since=${SUBJECTS_SINCE}`, '--format=%s'], {
    cwd: root,
    encoding: 'utf8',
  })
  return (stdout ?? '').split('\n').filter((subject) => subject.length > LIMITS.subject)
}

if (import.meta.main) {
  const root = path.resolve(import.meta.dirname, '../..')
  const lines = [
    ...tidyTree(root, machineOwn(root, process.env)).map(formatFinding),
    ...longSubjects(root).map((subject) => `subject of a commit over ${LIMITS.subject} characters: ${subject}`),
  ]
  for (const line of lines) console.log(line)
  console.log(lines.length === 0 ? 'tidy' : `${lines.length} to mend`)
  process.exitCode = lines.length === 0 ? 0 : 1
}
