/** Returns the initials of a name. */
export function initials(name) {
  return name.slice(0, 1);
}
