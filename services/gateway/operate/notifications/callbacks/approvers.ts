import type { PersonMarks } from '../../../admin/index.ts'
import type { NotifierConfig } from '../config.ts'

/** A person who may decide. */
export interface Approver {
  /** `user:<name>`, the name in the admin API, so that one person counts once there and in a chat. */
  readonly by: string
  /** Marks of the person, the same for every way to decide. */
  readonly person: string[]
  readonly groups: string[]
  /** Namespaces of the approvals; null for all. */
  readonly namespaces: readonly string[] | null
}

/** Prefix of people's names in votes. */
const USER_PREFIX = 'user:'

/** Maps a chat user to an approver (`userMap`). Returns null if the user may not decide. */
export function approverOf(
  { userMap }: NotifierConfig,
  chatUser: string,
  personOf: (names: readonly string[]) => PersonMarks,
): Approver | null {
  const mapped = Object.hasOwn(userMap, chatUser) ? userMap[chatUser] : undefined
  if (mapped === undefined) return null
  const { user, groups, namespaces } = typeof mapped === 'string' ? { ...NOWHERE_IN_PARTICULAR, user: mapped } : mapped
  const by = user.startsWith(USER_PREFIX) ? user : `${USER_PREFIX}${user}`
  const person = [...personOf([by.slice(USER_PREFIX.length)])]
  return { by, person, groups: [...groups], namespaces: namespaces.length === 0 ? null : namespaces }
}

const NOWHERE_IN_PARTICULAR = { groups: [], namespaces: [] }
