import type { NotifierConfig } from '../config.ts'
import type { Notice } from '../notice.ts'

/** Text of one block of Slack, in characters, and blocks that a message spends on arguments. */
export const SLACK_BLOCK_CHARS = 3_000
const SLACK_ARGUMENT_BLOCKS = 12
/** Arguments in a card of Teams and in a message of Matrix, in characters: both limit the whole message in bytes. */
const TEAMS_ARGUMENTS_CHARS = 5_000
const MATRIX_ARGUMENTS_CHARS = 10_000

/** Longest arguments that a message of this type shows, in characters. Programs get all there is. */
const LIMITS: Readonly<Record<NotifierConfig['type'], number>> = {
  slack: SLACK_BLOCK_CHARS * SLACK_ARGUMENT_BLOCKS,
  teams: TEAMS_ARGUMENTS_CHARS,
  matrix: MATRIX_ARGUMENTS_CHARS,
  webhook: Number.POSITIVE_INFINITY,
}

/** What a message shows of the arguments. */
export interface ArgumentsView {
  /** All of what approvers may see; null: it does not fit, and `note` says so. */
  readonly text: string | null
  /** Says that something is missing, and where it is; null: nothing is. */
  readonly note: string | null
}

/** Approving from a message is for those who saw all of it there. */
export function isWhole(type: NotifierConfig['type'], shown: Notice['arguments']): boolean {
  return shown !== undefined && !shown.cut && shown.text.length <= LIMITS[type]
}

/** Arguments in a message of this type: whole, or a note in place of what does not fit. Null: the notice has none. */
export function shownArguments(
  type: NotifierConfig['type'],
  { arguments: shown, approval }: Notice,
): ArgumentsView | null {
  if (shown === undefined) return null
  const where = `decide where they are shown: plat approvals show ${approval}`
  if (shown.text.length > LIMITS[type]) {
    return { text: null, note: `The arguments do not fit here (${shown.text.length} characters); ${where}` }
  }
  const note = shown.cut
    ? `The arguments are longer than approvalPreview.maxBytes: only their beginning is here; ${where}`
    : null
  return { text: shown.text, note }
}
