import { buildInfo } from '@plat/core'

/** What a service says before it runs, or instead of running. Each answers the exit status. */

/** Flags that cannot be read: what is wrong and how it is done, on stderr; 2, and 0 where help was asked for. */
export function printUsage(refused: {
  readonly message: string
  readonly usage: string
  readonly help: boolean
}): number {
  if (refused.message !== '') process.stderr.write(`${refused.message}\n`)
  process.stderr.write(refused.usage)
  return refused.help ? 0 : 2
}

/** A configuration that cannot be: every problem a line, on stderr; 1. */
export function refuseStart(problems: readonly string[]): number {
  process.stderr.write(problems.map((line) => `${line}\n`).join(''))
  return 1
}

/** `plat-identity 1.2.3 (commit …, built …, node26.10.0, linux/amd64)`; 0. */
export function printVersion(component: string): number {
  const { version, commit, buildDate, goVersion, platform } = buildInfo(component)
  process.stdout.write(
    `plat-${component} ${version} (commit ${commit}, built ${buildDate}, ${goVersion}, ${platform})\n`,
  )
  return 0
}
