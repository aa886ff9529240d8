import type { NotifierConfig } from '../config.ts'
import type { Notice } from '../notice.ts'

/** Maximum length of one Slack block, in characters, and number of blocks for arguments. */
export const SLACK_BLOCK_CHARS = 3_000
const SLACK_ARGUMENT_BLOCKS = 12
/** Maximum length of arguments in a Teams card and a Matrix message, in characters: both limit the message in bytes. */
const TEAMS_ARGUMENTS_CHARS = 5_000
const MATRIX_ARGUMENTS_CHARS = 10_000

/** Maximum length of arguments in a message of each type, in characters. Programs get all of them. */
const LIMITS: Readonly<Record<NotifierConfig['type'], number>> = {
  slack: SLACK_BLOCK_CHARS * SLACK_ARGUMENT_BLOCKS,
  teams: TEAMS_ARGUMENTS_CHARS,
  matrix: MATRIX_ARGUMENTS_CHARS,
  webhook: Number.POSITIVE_INFINITY,
}

/** Arguments in a message. */
export interface ArgumentsView {
  /** The whole arguments that approvers may see, or null if they do not fit; `note` says so. */
  readonly text: string | null
  /** Says that something is missing and where to find it, or null. */
  readonly note: string | null
}

/** Only people who saw the whole arguments in a message can approve there. */
export function isWhole(type: NotifierConfig['type'], preview: Notice['arguments']): boolean {
  return preview !== undefined && !preview.cut && preview.text.length <= LIMITS[type]
}

/** Returns the arguments for a message of this type, or a note if they do not fit; null if the notice has none. */
export function argumentsView(
  type: NotifierConfig['type'],
  { arguments: preview, approval }: Notice,
): ArgumentsView | null {
  if (preview === undefined) return null
  const where = `decide where they are shown: plat approvals show ${approval}`
  if (preview.text.length > LIMITS[type]) {
    return { text: null, note: `The arguments do not fit here (${preview.text.length} characters); ${where}` }
  }
  const note = preview.cut
    ? `The arguments are longer than approvalPreview.maxBytes: only their beginning is here; ${where}`
    : null
  return { text: preview.text, note }
}
