// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors

/** Threads that wait by JNI, from interpreted and from compiled code; a null pointer besides, which
 * the virtual machine catches by a signal. */
public final class Host {
  private static native int begin();

  private static native int waitOnce();

  private static int sum(int count) {
    int failed = 0;
    for (int i = 0; i < count; ++i) failed += waitOnce();
    return failed;
  }

  public static void main(String[] words) throws Exception {
    System.load(words[0]);
    begin();
    int[] failed = new int[4];
    Thread[] threads = new Thread[failed.length];
    for (int i = 0; i < threads.length; ++i) {
      final int number = i;
      threads[i] = new Thread(() -> failed[number] = sum(5000));
      threads[i].start();
    }
    for (Thread thread : threads) thread.join();
    boolean caught = false;
    Object nothing = words.length > 5 ? words : null;
    for (int i = 0; i < 20000 && !caught; ++i) {
      try {
        nothing.hashCode();
      } catch (NullPointerException expected) {
        caught = true;
      }
    }
    System.out.println("failed " + (failed[0] + failed[1] + failed[2] + failed[3]) + " caught " + caught);
  }
}
