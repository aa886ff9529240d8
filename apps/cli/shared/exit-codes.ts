/** Exit codes of commands: the one table, which docs/cli.md repeats. @table */

/** Codes that every command uses alike. `plat run` ends with the code of its program. */
export const EXIT = { done: 0, failed: 1, usage: 2, found: 3 } as const

/** Meanings of all codes, in the order of the documentation. */
export const exitCodeRows = {
  '0': 'done, and nothing was found',
  '1': 'failed; one line on stderr says why, and what to do next: nothing runs, the gateway refused, a name does not exist',
  '2': 'the command line is wrong, or a file to verify cannot be read',
  '3': 'a check found something, as the next table says',
  '4': 'verification: torn, or no signature that a given key could verify covers all of it',
  '5': 'verification: forked, which are two histories',
  '6': 'verification: truncated below its head or a checkpoint',
} as const

/** Commands that check something: when they end with 0, and when with 3. */
export const findings = {
  status: { done: 'everything is in force', found: 'some resource is refused' },
  'audit verify': { done: 'valid', found: 'broken: a record was changed, removed, added or moved' },
  'audit show': { done: 'found', found: 'its receipt is broken' },
  'audit verify-proof': { done: 'proven', found: 'changed, forged, or signed by another key' },
  'evidence verify': { done: 'proven', found: 'changed, forged, or signed by another key' },
  import: { done: 'everything was converted', found: 'not everything' },
  validate: { done: 'valid', found: 'something is refused; with -strict also warnings' },
  'config validate': { done: 'valid', found: 'errors' },
  'policy test': { done: 'allowed, or as -expect says, or all tests passed', found: 'otherwise' },
  'policy explain': {
    done: 'the same decision, or no policies to compare it with',
    found: 'another decision, or one that depends on arguments, which records do not have',
  },
  'policy simulate': {
    done: 'no change',
    found: 'some decisions change, or depend on arguments that were not captured',
  },
  posture: { done: 'no risks', found: 'some, or the file is invalid' },
  'license show': { done: 'none, valid or in its grace period', found: 'invalid or expired' },
} as const

/** `Exit codes: 0 valid, 3 errors.` for the help of a command that checks something. */
export function exitCodesLine({ done, found }: { readonly done: string; readonly found: string }): string {
  return `Exit codes: 0 ${done}, 3 ${found}.`
}
