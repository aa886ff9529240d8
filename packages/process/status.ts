import { buildInfo } from '@plat/core'

/** Output of a service before or instead of running. Each function returns the exit status. */

/** Prints invalid flags with the usage text on stderr; returns 2, or 0 when help was requested. */
export function printUsage(refused: {
  readonly message: string
  readonly usage: string
  readonly help: boolean
}): number {
  if (refused.message !== '') process.stderr.write(`${refused.message}\n`)
  process.stderr.write(refused.usage)
  return refused.help ? 0 : 2
}

/** Prints every problem of a configuration as a line on stderr; returns 1. */
export function refuseStart(problems: readonly string[]): number {
  process.stderr.write(problems.map((line) => `${line}\n`).join(''))
  return 1
}

/** Prints `plat-identity 1.2.3 (commit …, built …, node26.10.0, linux/amd64)`; returns 0. */
export function printVersion(component: string): number {
  const { version, commit, buildDate, goVersion, platform } = buildInfo(component)
  process.stdout.write(
    `plat-${component} ${version} (commit ${commit}, built ${buildDate}, ${goVersion}, ${platform})\n`,
  )
  return 0
}
